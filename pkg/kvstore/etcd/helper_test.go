package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// golden decodes a JSON file of testdata.
func golden(t *testing.T, name string, to any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// quick returns options with short intervals of the watchdog.
func quick() Options {
	o := DefaultOptions()
	o.Timings.Probe = time.Second
	o.Timings.ProbeInterval = 50 * time.Millisecond
	o.Timings.StatusInterval = 50 * time.Millisecond
	o.Timings.StatusRetry = 50 * time.Millisecond
	o.Timings.BackoffMax = 200 * time.Millisecond
	return o
}

// configOf loads a client file.
func configOf(t *testing.T, path string) *clientfile.Config {
	t.Helper()
	cfg, err := clientfile.Load(path)
	must(t, err)
	return cfg
}

// addresses makes a configuration from endpoints.
func addresses(t testing.TB, endpoints ...string) *clientfile.Config {
	t.Helper()
	cfg, err := clientfile.New(endpoints...)
	must(t, err)
	return cfg
}

// connect opens a session until the end of the test.
func connect(t testing.TB, cfg *clientfile.Config, o Options) *Session {
	t.Helper()
	e, err := Connect(waittest.Context(t), cfg, 0, o)
	must(t, err)
	t.Cleanup(e.Close)
	return e
}

// refused connects, which must fail, and returns the error. Timeouts that the test does not
// set are one hour, so a refusal that waits for a timeout fails the test.
func refused(t *testing.T, cfg *clientfile.Config, o Options) error {
	t.Helper()
	usual := DefaultTimings()
	if o.Timings.Connect == usual.Connect {
		o.Timings.Connect = time.Hour
	}
	if o.Timings.Dial == usual.Dial {
		o.Timings.Dial = time.Hour
	}
	e, err := Connect(waittest.Context(t), cfg, 0, o)
	if err == nil {
		e.Close()
		t.Fatal("connected")
	}
	var ke *kvstore.KeyError
	if !errors.As(err, &ke) || ke.Op != "connect" || ke.Key != cfg.Endpoints[0] {
		t.Errorf("%#v is not a KeyError of connecting to %s", err, cfg.Endpoints[0])
	}
	return err
}

// run starts Run and returns a channel with its result, which the test has to read.
func run(ctx context.Context, e *Session, onProbe func(kvstore.Probe)) <-chan error {
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, onProbe) }()
	return done
}

// ends waits for the result of Run.
func ends(t *testing.T, done <-chan error) error {
	t.Helper()
	return waittest.Receive(t, "Run to end", done)
}

// writeFile makes a file in a new directory.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// lock takes a lock.
func lock(t *testing.T, w kvstore.Writer, path string) *kvstore.Lock {
	t.Helper()
	l, err := w.Lock(waittest.Context(t), path)
	must(t, err)
	return l
}

// write puts a key.
func write(t *testing.T, w kvstore.Writer, key string, value []byte, opts ...kvstore.Option) kvstore.Result {
	t.Helper()
	r, err := w.Put(waittest.Context(t), key, value, opts...)
	must(t, err)
	return r
}

// watch opens a stream until the end of the test.
func watch(t testing.TB, c kvstore.Client, prefix string, after kvstore.Position) kvstore.Stream {
	t.Helper()
	st, err := c.Watch(waittest.Context(t), prefix, after)
	must(t, err)
	t.Cleanup(st.Close)
	return st
}

// waitConnected waits until a session is connected, or not.
func waitConnected(t *testing.T, e *Session, want bool) {
	t.Helper()
	must(t, e.WaitConnected(waittest.Context(t), want))
}

// closes closes a session, which ends its Run.
func closes(t *testing.T, e *Session, done <-chan error) {
	t.Helper()
	e.Close()
	kvtest.WantErr(t, ends(t, done), kvstore.ErrClosed)
}

// position returns a position in the history of a fake.
func position(rev int64) kvstore.Position { return kvstore.Position{ClusterID: 0xf00, Revision: rev} }

// second returns the error of a call, without its result.
func second[T any](_ T, err error) error { return err }

var must = waittest.Must
