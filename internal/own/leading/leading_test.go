package leading_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/internal/own/leading"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// term is that of a process which has written everything a minute after its begin.
type term struct{}

// process is a process that leads or is a standby.
type process struct {
	*leading.Leader[term]
	complete int // how often everything was written
	turns    int
	stop     func()
}

// run starts a process; without a kvstore, its writer never connects.
func run(t *testing.T, s *memory.Store) *process {
	t.Helper()
	d := kvstore.NewDurable(func(context.Context, int) (kvstore.Session, error) {
		if s == nil {
			return nil, errors.New("nobody listens")
		}
		return s.Connect(), nil
	}, kvstore.DurableOptions{PauseMax: time.Second})
	p := new(process)
	p.Leader = leading.New(leading.Params[term]{
		Writer: d, Lock: "lock", Standby: "another one leads",
		Begin: func(*kvstore.Lock) *term { return new(term) },
		Run: func(ctx context.Context, _ *term) error {
			select {
			case <-time.After(time.Minute):
				if took := p.Written(); took != time.Minute {
					t.Errorf("it took %s", took)
				}
			case <-ctx.Done():
			}
			<-ctx.Done()
			return ctx.Err()
		},
		Unready:  func(*term) map[string]string { return map[string]string{"services": "not yet"} },
		Turn:     func(*term) { p.turns++ },
		Complete: func() { p.complete++ },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- d.Run(ctx) }()
	go func() { ended <- p.Run(ctx) }()
	p.stop = func() {
		cancel()
		<-ended
		<-ended
	}
	return p
}

// is compares the state of a process.
func (p *process) is(t *testing.T, when string, leads bool, bootstrap time.Duration, waitsFor map[string]string) {
	t.Helper()
	synctest.Wait()
	ready, reasons := p.Ready()
	if p.Leads() != leads || p.Bootstrap() != bootstrap || ready != (waitsFor == nil) || !maps.Equal(reasons, waitsFor) {
		t.Errorf("%s: leads %t, bootstrap %s, ready %t, waits for %v", when, p.Leads(), p.Bootstrap(), ready, reasons)
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		first := run(t, s)
		first.is(t, "a new leader", true, 0, map[string]string{"services": "not yet"})
		second := run(t, s)
		second.is(t, "a new standby", false, 0, map[string]string{"election": "another one leads: ready as a standby after 10s"})
		time.Sleep(10 * time.Second)
		second.is(t, "a standby", false, 0, nil)
		time.Sleep(time.Minute)
		first.is(t, "everything is written", true, time.Minute, nil)
		first.stop()
		first.is(t, "the end of the term", false, 0, nil)
		time.Sleep(10 * time.Second)
		second.is(t, "the next term, which is ready from before", true, 0, nil)
		time.Sleep(time.Minute)
		second.is(t, "the next term has written everything", true, time.Minute, nil)
		second.stop()
		if first.complete != 1 || second.complete != 1 || first.turns != 2 || second.turns != 2 {
			t.Errorf("complete %d and %d times, turns %d and %d", first.complete, second.complete, first.turns, second.turns)
		}
	})
}

func TestWithoutAKVStoreNobodyIsReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := run(t, nil)
		time.Sleep(time.Hour)
		p.is(t, "an hour without an answer", false, 0, map[string]string{"own kvstore": "not connected: nobody listens"})
		p.stop()
	})
}
