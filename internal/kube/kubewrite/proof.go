package kubewrite

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// proofAge is how old a proof may be on which a write relies. The API server knows nothing of the lock, so a
// write that was sent can arrive later.
const proofAge = 500 * time.Millisecond

// proof is what writes rely on. A program that was frozen finds its proof too old, and asks again before it writes.
type proof struct {
	mu  sync.Mutex
	ask func(context.Context) error // guarded by mu, as below; nil: nothing has to be proved
	at  time.Time                   // when the last one was asked for that holds
}

// Prove says how to prove that this program may write, such as by a lock that it holds, from now on. Each
// write relies on an answer without an error that is not older than half a second, and is not made without one.
// Nil: nothing has to be proved.
func (w *Writer) Prove(ask func(context.Context) error) {
	w.proof.mu.Lock()
	defer w.proof.mu.Unlock()
	w.proof.ask, w.proof.at = ask, time.Time{}
}

// check returns nil when there is a proof. Those who come while one is asked for wait for it.
func (p *proof) check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ask == nil || time.Since(p.at) <= proofAge {
		return nil
	}
	asked := time.Now()
	if err := p.ask(ctx); err != nil {
		return fmt.Errorf("it is not certain that this program still leads, so nothing is written: %w", err)
	}
	p.at = asked
	return nil
}
