package clustermesh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// TestAFileThatIsBroken: after a client file is overwritten by mistake, there is time to correct it. The cluster stays
// unchanged, and a notice has the time at which it will be withdrawn. A removed file takes effect without that delay.
func TestAFileThatIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c1 := w.remote("c1", 1)
	c1.join()
	w.inState("c1", remotecluster.Ready)
	c1.converges()
	path := filepath.Join(w.dir, "c1")
	good, err := os.ReadFile(path)
	must(t, err)
	status := func() remotecluster.Status {
		for _, c := range w.mesh.Clusters() {
			if c.Name == "c1" {
				return c
			}
		}
		return remotecluster.Status{}
	}
	since := status().ConnectedSince
	notice := func() string {
		for _, n := range status().Notices {
			if n.Code == codes.ClientFileBroken {
				return n.Message
			}
		}
		return ""
	}
	for _, text := range []string{"", "endpo", `{"endpoints": []}`} {
		revision := w.mesh.Revision()
		write(t, path, text)
		w.until("a notice", func() bool { return notice() != "" })
		if c := status(); c.State != remotecluster.Ready || !strings.Contains(notice(), path) || w.mesh.Revision() == revision {
			t.Errorf("with %q: %s %q", text, c.State, notice())
		}
		c1.object(7, len(text)+2) // the cluster is still followed
		c1.converges()
		write(t, path, string(good))
		w.until("no notice", func() bool { return notice() == "" })
	}
	if c := status(); c.State != remotecluster.Ready || !c.ConnectedSince.Equal(since) {
		t.Errorf("%s, connected since %v, before since %v", c.State, c.ConnectedSince, since)
	}
	write(t, path, "")
	w.until("a notice", func() bool { return notice() != "" })
	must(t, os.Remove(path))
	w.gone("c1")
}

// TestABrokenFileIsGoneInTheEnd: a file that never was a client file adds no cluster, and one that is broken for long
// enough removes its cluster.
func TestABrokenFileIsGoneInTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "never"), "nothing of ours")
	write(t, filepath.Join(dir, "a"), configText(1))
	write(t, filepath.Join(dir, "b"), configText(2))
	f := followFor(t, dir, 50*time.Millisecond)
	f.untilNames("a", "b")
	write(t, filepath.Join(dir, "a"), "endpo")
	f.untilNames("b")
}

// TestABrokenFileIsListedInTheEnd: its cluster is removed, and the file that was not corrected is listed among the
// ignored files.
func TestABrokenFileIsListedInTheEnd(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t, nil)
	w.mesh.dir.Grace = 50 * time.Millisecond
	w.start()
	c1 := w.remote("c1", 1)
	c1.join()
	w.inState("c1", remotecluster.Ready)
	path := filepath.Join(w.dir, "c1")
	good, err := os.ReadFile(path)
	must(t, err)
	write(t, path, "endpo")
	w.gone("c1")
	w.until("the file to be listed", func() bool {
		all := w.mesh.Ignored()
		return len(all) == 1 && all[0].File == path && strings.Contains(all[0].Reason, "it was a client file")
	})
	write(t, path, string(good))
	w.inState("c1", remotecluster.Ready)
	if all := w.mesh.Ignored(); len(all) > 0 {
		t.Errorf("still listed: %v", all)
	}
}
