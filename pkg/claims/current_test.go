package claims

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestFollowReadsWhatLoadReads: what Load refuses changes nothing later either.
func TestFollowReadsWhatLoadReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := []byte("default: deny\nclusters: {}\n")
	large := append(bytes.Clone(good), bytes.Repeat([]byte("# more\n"), maxFile/7)...)
	write(good)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var current Current
		var reported atomic.Pointer[error]
		ended := make(chan error)
		go func() {
			ended <- current.Follow(ctx, file, func(err error) { reported.Store(&err) }, slog.New(slog.DiscardHandler))
		}()
		look := func() error {
			time.Sleep(2 * rescan)
			synctest.Wait()
			return *reported.Load()
		}
		last := look()
		first := current.Policy()
		if first == nil || last != nil {
			t.Fatalf("%v, %v", first, last)
		}
		write(large)
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("loaded: %v", err)
		}
		if last := look(); current.Policy() != first || last == nil || !strings.Contains(last.Error(), "bytes") {
			t.Errorf("a large file: %v", last)
		}
		write(good)
		if last := look(); current.Policy() == nil || last != nil {
			t.Errorf("the same as at first: %v", last)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	if _, err := Load(dir); err == nil {
		t.Error("a directory was loaded")
	}
}
