package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const text = `# Title
In the file:

    first {
        second

    }

Afterwards:

    other
`

func write(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "document")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBlock(t *testing.T) {
	t.Parallel()
	got := strings.TrimSpace(Block(t, write(t), "first", "second", "2nd"))
	if want := "first {\n    2nd\n\n}"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// failing records its failures.
type failing struct {
	testing.TB
	with string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.with = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestWhatIsMissingFails(t *testing.T) {
	t.Parallel()
	file := write(t)
	for want, call := range map[string]func(testing.TB){
		"no block":      func(tb testing.TB) { Block(tb, file, "second {") },
		`lacks "third"`: func(tb testing.TB) { Block(tb, file, "first", "third", "3rd") },
		`lacks "other"`: func(tb testing.TB) { Block(tb, file, "first", "other", "another") },
	} {
		f, done := new(failing), make(chan struct{})
		go func() {
			defer close(done)
			call(f)
		}()
		<-done
		if !strings.Contains(f.with, want) {
			t.Errorf("%q lacks %q", f.with, want)
		}
	}
}
