package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestDurableOutlivesItsSessions: the leases continue when the same server restarts. When
// another server replaces it, their keys are reported once.
func TestDurableOutlivesItsSessions(t *testing.T) {
	t.Parallel()
	srv := etcdtest.StartProcess(t)
	o := hasty()
	o.LeaseTTL = time.Minute
	d := NewDurable(func() (*clientfile.Config, error) { return clientfile.New(srv.Endpoint()) }, o)
	lost := make(chan []string, 10)
	d.OnLeaseExpired("p/", func(keys []string) { lost <- keys })
	ended := make(chan error, 1)
	go func() { ended <- d.Run(t.Context()) }()
	put := func(key string) {
		t.Helper()
		waittest.Until(t, "a write of "+key, func() bool {
			_, err := d.Put(waittest.Context(t), key, []byte("v"), kvstore.Leased())
			return err == nil
		})
	}
	put("p/a")
	srv.Kill(t)
	if _, err := d.Put(waittest.Context(t), "p/never", nil); err == nil {
		t.Error("a dead server was written to")
	}
	srv.Restart(t)
	put("p/b")
	for _, key := range []string{"p/a", "p/b"} {
		if kv, _, err := d.Get(waittest.Context(t), key); err != nil || kv == nil || !d.Owns(kv.Lease) {
			t.Errorf("%s is %v, %v", key, kv, err)
		}
	}
	select {
	case keys := <-lost:
		t.Errorf("the same server is back, and %q are said to be lost", keys)
	default:
	}

	if r, err := d.Update(waittest.Context(t), []kvstore.Write{{Key: "q", Value: []byte("v")}, {Key: "r", Delete: true}}, kvstore.Leased()); err != nil || !r.Done {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := d.Update(waittest.Context(t), nil); !kvstore.IsRefused(err) {
		t.Error(err)
	}

	srv.RestartAsOther(t)
	put("p/c")
	keys := <-lost
	// p/c may be reported: a write whose answer was lost may have tied it to an old lease.
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "p/c" })
	if !slices.Equal(keys, []string{"p/a", "p/b"}) {
		t.Errorf("%q were lost", keys)
	}
	if s := d.Status(); !s.Connected || s.EtcdClusterID == 0 {
		t.Errorf("%+v", s)
	}

	d.Close()
	kvtest.WantErr(t, <-ended, kvstore.ErrClosed)
	kvtest.WantErr(t, second(d.Put(waittest.Context(t), "p/d", nil)), kvstore.ErrClosed)
	if s := d.Status(); s.Connected || s.LastError == "" {
		t.Errorf("closed: %+v", s)
	}
	d.Close()
}

// TestDurableSaysWhyThereIsNoConnection: a call waits, and its error contains the reason.
func TestDurableSaysWhyThereIsNoConnection(t *testing.T) {
	t.Parallel()
	o := hasty()
	o.Timings.Connect = 200 * time.Millisecond
	broken := errors.New("the file is broken")
	d := NewDurable(func() (*clientfile.Config, error) { return nil, broken }, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	waittest.Until(t, "the reason", func() bool { return strings.Contains(d.Status().LastError, "broken") })
	_, _, err := d.Get(ctx, "k")
	if ke := new(kvstore.KeyError); !errors.As(err, &ke) || ke.Op != "get" || ke.Key != "k" || !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	brief, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if err := d.WaitConnected(brief); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	cancel()
	kvtest.WantErr(t, <-ended, context.Canceled)
}

// TestDurableTellsOfItsConnection: a Durable reports connection and disconnection, and the probes of each session.
func TestDurableTellsOfItsConnection(t *testing.T) {
	t.Parallel()
	srv := etcdtest.StartProcess(t)
	o := quick()
	o.Timings.Connect = 500 * time.Millisecond
	endpoint := srv.Endpoint()
	d := NewDurable(func() (*clientfile.Config, error) { return clientfile.New(endpoint) }, o)
	must(t, d.WaitDisconnected(waittest.Context(t)))
	found := make(chan kvstore.Probe, 1000)
	d.OnProbe(func(p kvstore.Probe) { found <- p })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	probe := func(what string, is func(kvstore.Probe) bool) {
		t.Helper()
		waittest.Until(t, what, func() bool {
			select {
			case p := <-found:
				return is(p)
			default:
				return false
			}
		})
	}
	well := func(p kvstore.Probe) bool { return p.Err == nil && p.Head.Revision > 0 && !p.At.IsZero() }
	for _, when := range []string{"at first", "again"} {
		must(t, d.WaitConnected(waittest.Context(t)))
		probe(when+", a probe that succeeds", well)
		brief, stop := context.WithTimeout(t.Context(), time.Millisecond)
		kvtest.WantErr(t, d.WaitDisconnected(brief), context.DeadlineExceeded)
		stop()
		srv.Kill(t)
		must(t, d.WaitDisconnected(waittest.Context(t)))
		if s := d.Status(); s.Connected {
			t.Errorf("%s: %+v", when, s)
		}
		brief, stop = context.WithTimeout(t.Context(), time.Millisecond) // also while a session waits for an answer
		kvtest.WantErr(t, d.WaitConnected(brief), context.DeadlineExceeded)
		stop()
		probe(when+", a probe that fails", func(p kvstore.Probe) bool { return p.Err != nil })
		srv.Restart(t)
		waittest.Until(t, when+", the next session", func() bool { return d.Status().Connected })
	}
	d.OnProbe(nil)
	must(t, d.WaitConnected(waittest.Context(t)))
	cancel()
	kvtest.WantErr(t, <-ended, context.Canceled)
	must(t, d.WaitDisconnected(waittest.Context(t)))
}
