package claims

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestFollow: an unusable file changes nothing, and the reports follow the file, also when it returns to its earlier
// content.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "claims.yaml")
	if _, err := Load(dir); err == nil {
		t.Error("a directory was loaded")
	}
	synctest.Test(t, func(t *testing.T) {
		c := new(Current)
		var reported atomic.Value // of string
		ctx, stop := context.WithCancel(t.Context())
		defer func() { stop(); synctest.Wait() }()
		after := func(what, text, want string) {
			t.Helper()
			var err error
			if text == "gone" {
				err = os.Remove(file)
			} else {
				err = os.WriteFile(file, []byte(text), 0o600)
			}
			waittest.Must(t, err)
			time.Sleep(3 * time.Second) // on the bubble's clock
			synctest.Wait()
			if health, _ := reported.Load().(string); !strings.Contains(health, want) {
				t.Errorf("%s: %s, want %s", what, health, want)
			}
			if _, admitted := c.Policy().Of("evil"); admitted {
				t.Errorf("%s: a cluster without an entry is admitted", what)
			}
		}
		waittest.Must(t, os.WriteFile(file, []byte("default: deny"), 0o600))
		go func() {
			_ = c.Follow(ctx, file, func(err error) {
				health := "well"
				if err != nil {
					health = err.Error()
				}
				reported.Store(health)
			}, slog.New(slog.DiscardHandler))
		}()
		after("at first", "default: deny", "well")
		after("emptied", "", "it is empty")
		after("too large", "default: deny\n"+strings.Repeat("# more\n", maxFile/7), "bytes")
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("loaded: %v", err)
		}
		after("gone", "gone", "no such file")
		after("back, and empty still", "", "it is empty")
		after("as before", "default: deny", "well")
		after("gone again", "gone", "no such file")
		after("back as it was", "default: deny", "well")
	})
}
