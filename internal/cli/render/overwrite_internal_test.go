package render

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var errFull = errors.New("no space left on device")

// failing is a file of which one call fails; a failing write has written half of its text.
type failing struct {
	*os.File
	calls, fails int
}

func (f *failing) fail() bool {
	f.calls++
	return f.calls == f.fails
}

func (f *failing) WriteAt(text []byte, at int64) (int, error) {
	if f.fail() {
		n, _ := f.File.WriteAt(text[:len(text)/2], at)
		return n, errFull
	}
	return f.File.WriteAt(text, at)
}

func (f *failing) Truncate(size int64) error {
	if f.fail() {
		return errFull
	}
	return f.File.Truncate(size)
}

func (f *failing) Sync() error {
	if f.fail() {
		return errFull
	}
	return f.File.Sync()
}

// TestOverwriteIsWholeOrNot: after a failure of any call, the file has the whole old text.
func TestOverwriteIsWholeOrNot(t *testing.T) {
	t.Parallel()
	for _, texts := range [][2]string{{"old", "a new text"}, {"an old text", "new"}, {"same", "size"}, {"", "new"}, {"old", ""}} {
		old, text := texts[0], texts[1]
		for fails := range 6 { // 0 for none
			path := filepath.Join(t.TempDir(), "file")
			waittest.Must(t, os.WriteFile(path, []byte(old), 0o600))
			open, err := os.OpenFile(path, os.O_WRONLY, 0)
			waittest.Must(t, err)
			f := &failing{File: open, fails: fails}
			err = overwrite(f, []byte(old), []byte(text))
			waittest.Must(t, open.Close())
			got, readErr := os.ReadFile(path)
			waittest.Must(t, readErr)
			want := text
			if fails > 0 && f.calls >= fails {
				want = old
				if !errors.Is(err, errFull) {
					t.Errorf("%q over %q, call %d: %v", text, old, fails, err)
				}
			} else if err != nil {
				t.Errorf("%q over %q: %v", text, old, err)
			}
			if string(got) != want {
				t.Errorf("%q over %q, call %d fails: the file has %q", text, old, fails, got)
			}
		}
	}
}
