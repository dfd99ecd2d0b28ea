package servers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// phase is the other work of the agent at a time.
type phase int32

const (
	unmeasured phase = iota
	harmless         // a busy client without wrong requests
	attacked
	phases
)

// friend is a well-behaved client. It measures how long it waits for its answers.
type friend struct {
	name string
	now  *atomic.Int32 // the phase

	mu     sync.Mutex
	waited [phases][]time.Duration // guarded by mu; one for each answer
	failed [phases]int             // guarded by mu; questions without an answer
	lost   error                   // guarded by mu; the error that ended its stream
}

// served records the answer to a request that was sent at a time.
func (f *friend) served(at time.Time, err error) {
	p := phase(f.now.Load())
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed[p]++
		return
	}
	f.waited[p] = append(f.waited[p], time.Since(at))
}

// loses notes the end of a stream, which is an error for any friend.
func (f *friend) loses(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost == nil {
		f.lost = err
	}
}

// answers is the number of its answers in a phase.
func (f *friend) answers(p phase) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waited[p])
}

// enough is the minimum number of answers for a comparison.
const enough = 100

// judge compares how long the friend waits during an attack and while a harmless client is as busy.
func (f *friend) judge(tb testing.TB, times float64) {
	tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil {
		tb.Errorf("%s: its stream ended: %v", f.name, f.lost)
	}
	with, without := f.waited[attacked], f.waited[harmless]
	slices.Sort(with)
	slices.Sort(without)
	if len(with) == 0 {
		tb.Errorf("%s: not answered once during the attack (%d failures)", f.name, f.failed[attacked])
		return
	}
	text := fmt.Sprintf("%-10s %6d answers in the attack, %d failures: median %s, 95 %% within %s", f.name, len(with), f.failed[attacked], at(with, 0.5), at(with, 0.95))
	if len(without) > 0 {
		text += fmt.Sprintf("; %d beside a harmless client: %s, %s; ratio %.2f, %.2f", len(without), at(without, 0.5), at(without, 0.95),
			float64(at(with, 0.5))/float64(at(without, 0.5)), float64(at(with, 0.95))/float64(at(without, 0.95)))
	}
	tb.Log(text)
	if f.failed[attacked] > len(with)/100+f.failed[harmless] {
		tb.Errorf("%s: %d questions of %d were not answered", f.name, f.failed[attacked], len(with)+f.failed[attacked])
	}
	if f.slowLocked(times) {
		tb.Errorf("%s: it waits %s, beside a harmless client %s", f.name, at(with, 0.5), at(without, 0.5))
	}
}

// slow reports whether it waits longer during the attack, by this factor.
func (f *friend) slow(times float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.waited {
		slices.Sort(all)
	}
	return f.slowLocked(times)
}

func (f *friend) slowLocked(times float64) bool {
	with, without := f.waited[attacked], f.waited[harmless]
	return len(with) >= enough && len(without) >= enough && float64(at(with, 0.5)) > times*float64(at(without, 0.5))
}

// forget resets the measurements; failures stay.
func (f *friend) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waited = [phases][]time.Duration{}
}

// at is a quantile of sorted times.
func at(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))].Round(time.Microsecond)
}

// friendlyTime is how long a friend waits for one answer.
const friendlyTime = 5 * time.Second

// resolves asks for addresses by DNS, repeatedly.
func (w *world) resolves(ctx context.Context, f *friend, network string) {
	client := &dns.Client{Net: network, Timeout: friendlyTime}
	var conn *dns.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	exchange := func(q *dns.Msg) (err error) {
		if conn == nil {
			if conn, err = client.Dial(w.agent.dns); err != nil {
				conn = nil
				return err
			}
		}
		a, _, err := client.ExchangeWithConn(q, conn)
		if err == nil && (a.Rcode != dns.RcodeSuccess || len(a.Answer) < 6) {
			err = fmt.Errorf("%s with %d addresses", dns.RcodeToString[a.Rcode], len(a.Answer))
		}
		if err != nil {
			_ = conn.Close()
			conn = nil
		}
		return err
	}
	for n := 0; waiting.Sleep(ctx, 3*time.Millisecond) == nil; n++ {
		q := new(dns.Msg)
		q.SetQuestion(fmt.Sprintf("svc%d.ns.svc.clusterset.local.", n%numServices), dns.TypeA)
		began := time.Now()
		reused := conn != nil
		err := exchange(q)
		if err != nil && reused { // a server closes a connection after some questions
			err = exchange(q)
		}
		if ctx.Err() == nil {
			f.served(began, err)
		}
	}
}

// probes acts as the kubelet: it opens a connection for each request.
func (w *world) probes(ctx context.Context, f *friend) {
	client := &http.Client{Timeout: friendlyTime, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: w.secure}}
	for waiting.Sleep(ctx, 10*time.Millisecond) == nil {
		began := time.Now()
		err := gets(ctx, client, w.url("/healthz"))
		if ctx.Err() == nil {
			f.served(began, err)
		}
	}
}

func gets(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", resp.Status)
	}
	return err
}
