package guard

import (
	"errors"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	if err := Run(func() error { return own }); !errors.Is(err, own) {
		t.Errorf("an error became %v", err)
	}
	if err := Func(func() error { return nil })(); err != nil {
		t.Errorf("nil became %v", err)
	}
	var none map[string]int
	write := func(m map[string]int) { m["x"]++ }
	err := Run(func() error { write(none); return nil })
	p, ok := errors.AsType[*Panic](err)
	if !ok || !strings.Contains(p.Stack, "guard_test.go") || !strings.Contains(err.Error(), "nil map") {
		t.Errorf("a panic became %#v", err)
	}
	if err := Run(func() error { panic(strings.Repeat("x", 1<<20)) }); len(err.Error()) > 1024 {
		t.Errorf("a text of %d bytes", len(err.Error()))
	}
}

// TestPlace: the place is in our code, with every text of the panic, also when a library or the runtime panics.
func TestPlace(t *testing.T) {
	t.Parallel()
	panicking := func(text string) string {
		p, _ := errors.AsType[*Panic](Run(func() error { _ = strings.Repeat(text, -len(text)); return nil }))
		return p.Place
	}
	indexing := func(i int) string {
		p, _ := errors.AsType[*Panic](Run(func() error { _ = []int{}[i]; return nil }))
		return p.Place
	}
	if a, b := indexing(1), indexing(2); a != b || !strings.Contains(a, "guard_test.go:") {
		t.Errorf("%q, %q", a, b)
	}
	if a, b := panicking("x"), panicking("xx"); a != b || a == indexing(1) || !strings.Contains(a, "guard_test.go:") {
		t.Errorf("%q, %q", a, b)
	}
}
