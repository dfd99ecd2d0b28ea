package clustermesh

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

func everybody(string) bool { return true }

// come makes the calls of a cluster that connects with an ID.
func (x *ids) come(name string, id uint32) error {
	if err := x.Admit(name, id); err != nil {
		return err
	}
	x.Release(name) // as if it had another ID before
	return x.Reserve(name, id)
}

func codeOf(err error) codes.Code {
	if no, is := errors.AsType[*remotecluster.Inadmissible](err); is {
		return no.Code
	}
	if c, is := errors.AsType[*remotecluster.IDConflict](err); is && c.Remembered {
		return codes.ClusterIDRemembered
	}
	return ""
}

func grantedBy(t *testing.T, file string) *claims.Current {
	t.Helper()
	p, err := claims.Parse([]byte(file))
	must(t, err)
	c := new(claims.Current)
	c.Set(p)
	return c
}

func TestAnIDIsKeptForItsOwnerOverARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(granted *claims.Current) *ids {
		return newIDs("own", 9, granted, dir, slog.New(slog.DiscardHandler))
	}
	x := start(nil)
	must(t, x.come("paris", 3))
	x = start(nil) // paris is not connected
	x.keep(everybody)
	if err := x.come("evil", 3); codeOf(err) != codes.ClusterIDRemembered || !strings.Contains(err.Error(), "paris") {
		t.Errorf("another cluster with the ID: %v", err)
	}
	if err := x.come("paris", 3); err != nil {
		t.Errorf("the owner is back: %v", err)
	}
	x = start(grantedBy(t, "clusters: {tokyo: {id: 3}}"))
	if err := x.come("tokyo", 3); err != nil {
		t.Errorf("a pin overrides what is remembered: %v", err)
	}
	x = start(nil)
	x.keep(func(name string) bool { return name != "tokyo" }) // its file was removed
	if err := x.come("evil", 3); err != nil {
		t.Errorf("the file of the owner is gone: %v", err)
	}
}

func TestTwoClustersMaySwapTheirIDs(t *testing.T) {
	t.Parallel()
	x := newIDs("own", 9, nil, t.TempDir(), slog.New(slog.DiscardHandler))
	for _, step := range []struct {
		name string
		id   uint32
	}{{"a", 1}, {"b", 2}} {
		must(t, x.come(step.name, step.id))
	}
	_ = x.come("a", 2) // b has it, but a has released its other ID
	if err := x.come("b", 1); err != nil {
		t.Error(err)
	}
	if err := x.come("a", 2); err != nil {
		t.Error(err)
	}
}

func TestADamagedMemoryIsAWarning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "cluster-ids.json"), []byte("{\"version\":1,"), 0o600))
	var log strings.Builder
	x := newIDs("own", 9, nil, dir, slog.New(slog.NewTextHandler(&log, nil)))
	if !strings.Contains(log.String(), "Cannot read the saved cluster IDs") {
		t.Errorf("no warning: %q", log.String())
	}
	if err := x.come("paris", 3); err != nil {
		t.Error(err)
	}
	if known, err := readIDs(filepath.Join(dir, "cluster-ids.json")); err != nil || known["paris"] != 3 {
		t.Errorf("%v, %v", known, err)
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	x := newIDs("own", 9, grantedBy(t, "default: deny\nclusters: {paris: {id: 3}, tokyo: {}}"), "", slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		name string
		id   uint32
		want codes.Code
	}{
		{"paris", 3, ""}, {"paris", 4, codes.ClusterIDNotPinned}, {"tokyo", 3, codes.ClusterIDNotPinned}, {"tokyo", 5, ""}, {"evil", 6, codes.ClusterNotAdmitted},
	} {
		if err := x.Admit(c.name, c.id); codeOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s with %d: %v, want %q", c.name, c.id, err, c.want)
		}
	}
}

// TestAnIDThatFlipsIsHeld: of 1,500 changes only a few are accepted.
func TestAnIDThatFlipsIsHeld(t *testing.T) {
	t.Parallel()
	now := time.Now()
	x := newIDs("own", 9, nil, "", slog.New(slog.DiscardHandler))
	x.now = func() time.Time { return now }
	taken := 0
	for i := range 1500 {
		now = now.Add(100 * time.Millisecond)
		err := x.come("evil", 1+uint32(i%2))
		if err == nil {
			taken++
		} else if codeOf(err) != codes.ClusterIDUnsteady {
			t.Fatal(err)
		}
	}
	if taken != maxFlips+1 {
		t.Errorf("%d of them were taken up, want %d", taken, maxFlips+1)
	}
	now = now.Add(flipWindow)
	if err := x.come("evil", 2); err != nil {
		t.Errorf("after a while with one ID: %v", err)
	}
	for i := range 3 { // rare changes are allowed
		now = now.Add(flipWindow / 2)
		if err := x.come("evil", 3+uint32(i)); err != nil {
			t.Error(err)
		}
	}
}
