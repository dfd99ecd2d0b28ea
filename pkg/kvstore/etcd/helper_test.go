package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// golden reads a file of testdata.
func golden(t *testing.T, name string, to any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// quick are options whose watchdog is in a hurry.
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
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// addresses makes a configuration of endpoints.
func addresses(t testing.TB, endpoints ...string) *clientfile.Config {
	t.Helper()
	cfg, err := clientfile.New(endpoints...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// connect opens a session until the end of the test.
func connect(t testing.TB, cfg *clientfile.Config, o Options) *Session {
	t.Helper()
	e, err := Connect(waittest.Context(t), cfg, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// refused connects, which must fail, and returns the error. What the test has no limit of
// its own for would take an hour, so a refusal waits for none.
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

// contains checks that an error's text has all the parts.
func contains(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not say %q", err, p)
		}
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// run starts Run and returns a channel with its result, which the test has to
// read.
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
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
