package clustermesh

import (
	"log/slog"
	"strings"
	"testing"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	x := newIDs("own", 1, nil, "", slog.New(slog.DiscardHandler))
	ok := func(name string, id uint32) {
		t.Helper()
		if err := x.Reserve(name, id); err != nil {
			t.Errorf("Reserve(%s, %d): %v", name, id, err)
		}
	}
	refused := func(name string, id uint32, by string) {
		t.Helper()
		if err := x.Reserve(name, id); err == nil || !strings.Contains(err.Error(), by) {
			t.Errorf("Reserve(%s, %d): %v, want a refusal that names %s", name, id, err, by)
		}
	}
	refused("a", 1, "own") // the own cluster's ID
	ok("a", 2)
	ok("a", 2)           // again
	refused("b", 2, "a") // the first cluster keeps it
	ok("b", 3)
	refused("a", 3, "b") // a change to a taken ID: the cluster keeps its old one
	refused("c", 2, "a")
	ok("a", 4) // a change to a free ID releases the old one
	ok("c", 2)
	x.Release("b")
	x.Release("b")
	ok("d", 3)
	x.Release("own") // it holds no ID as a remote cluster
	refused("e", 1, "own")
}

func TestIDsOfAnObserver(t *testing.T) {
	t.Parallel()
	x := newIDs("default", 0, nil, "", slog.New(slog.DiscardHandler))
	if err := x.Reserve("a", 1); err != nil {
		t.Error(err)
	}
}
