package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestManifestsThatComeChangeAndGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(service("a", "1")+service("b", "1")), 0o600))
	r := run(t, dir)
	must(t, r.cluster.CiliumIdentities.WaitListed(t.Context()))
	if got := r.services(); got != "a=1 b=1" {
		t.Errorf("when everything is listed there are %q", got)
	}
	r.write("c.json", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"c"}}`)
	r.write("d.yml", service("d", "1"))
	r.write("e.txt", service("e", "1"))
	r.write(".f.yaml", service("f", "1"))
	must(t, os.Mkdir(filepath.Join(dir, "deeper.yaml"), 0o700))
	r.untilServices("a=1 b=1 c= d=1")
	r.replace("a.yaml", service("b", "2"))
	r.untilServices("b=2 c= d=1")
	must(t, os.Remove(filepath.Join(dir, "d.yml")))
	r.untilServices("b=2 c=")
	r.untilProblems()
}

func TestAnUnchangedObjectCausesNothing(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir())
	r.replace("a.yaml", service("a", "1")+service("b", "1"))
	r.untilServices("a=1 b=1")
	find := func() *corev1.Service {
		s, _ := r.cluster.Services.Get(r.db.ReadTxn(), "default/a")
		return s
	}
	before := find()
	r.replace("a.yaml", "# reordered\n"+service("b", "2")+service("a", "1"))
	r.untilServices("a=1 b=2")
	if find() != before {
		t.Error("an object that stayed as it was is another one")
	}
}

// TestAnObjectIsAsOldAsItsFile, unless it says when it was created.
func TestAnObjectIsAsOldAsItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "a.yaml")
	must(t, os.WriteFile(name, []byte(service("a", "1")+"---\n"+strings.Replace(service("b", "1"), "metadata: {", "metadata: {creationTimestamp: '2020-01-02T03:04:05Z', ", 1)), 0o600))
	modified := time.Date(2026, 5, 6, 7, 8, 9, 500, time.UTC)
	must(t, os.Chtimes(name, modified, modified))
	r := run(t, dir)
	r.untilServices("a=1 b=1")
	for name, want := range map[string]string{"a": "2026-05-06T07:08:09Z", "b": "2020-01-02T03:04:05Z"} {
		s, _ := r.cluster.Services.Get(r.db.ReadTxn(), "default/"+name)
		if got := s.CreationTimestamp.UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s was created at %s, want %s", name, got, want)
		}
	}
}

func TestABadDocumentLeavesItsFileAsItWas(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir())
	r.replace("a.yaml", service("a", "1")+service("b", "1"))
	r.replace("z.yaml", service("z", "1"))
	r.untilServices("a=1 b=1 z=1")
	r.replace("a.yaml", service("a", "2")+"kind: [\n")
	r.replace("z.yaml", service("z", "2"))
	r.untilServices("a=1 b=1 z=2")
	r.untilProblems("a.yaml, document 2: it is not valid YAML; correct it: yaml: line 1: did not find expected node content; the previous content of the file stays in use")
	r.replace("new.yaml", service("m", "1")+"kind: Service\n")
	r.untilProblems("a.yaml, document 2", "new.yaml, document 2: it is no Kubernetes object: it needs an apiVersion and a kind; the rest of the file counts")
	r.untilServices("a=1 b=1 m=1 z=2")
	r.replace("a.yaml", service("a", "3"))
	r.replace("new.yaml", service("m", "2"))
	r.untilServices("a=3 m=2 z=2")
	r.untilProblems()
	if n := r.log.Count("All of the manifests is used again"); n != 1 {
		t.Errorf("%d times it was logged that all is well again", n)
	}
	if n := r.log.Count("document=2"); n != 2 {
		t.Errorf("%d warnings about bad documents, want each once", n)
	}
}

func TestAFileThatCannotBeReadLeavesWhatItSaid(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir())
	r.replace("a.yaml", service("a", "1"))
	r.untilServices("a=1")
	must(t, os.Symlink("/proc/self/mem", filepath.Join(r.dir, ".tmp"))) // reading it fails, for root too
	must(t, os.Rename(filepath.Join(r.dir, ".tmp"), filepath.Join(r.dir, "a.yaml")))
	r.untilProblems("the previous content of the file stays in use")
	r.write("mark.yaml", service("mark", ""))
	r.untilServices("a=1 mark=")
}

func TestAnObjectInTwoFiles(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir())
	r.replace("b.yaml", service("a", "b")+service("a", "again"))
	r.untilServices("a=b")
	r.untilProblems("b.yaml, document 2: the Service default/a is also in b.yaml, document 1")
	r.replace("a.yaml", service("a", "a"))
	r.untilServices("a=a")
	r.untilProblems(
		"b.yaml, document 1: the Service default/a is also in a.yaml, document 1, which counts because it comes first; remove one of them",
		"b.yaml, document 2: the Service default/a is also in a.yaml, document 1")
	must(t, os.Remove(filepath.Join(r.dir, "a.yaml")))
	r.untilServices("a=b")
}

func TestKindsThatNobodyReadsAreSaidOnce(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir())
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"
	r.replace("a.yaml", deployment+"---\n"+deployment)
	r.replace("b.yaml", deployment)
	r.replace("z.yaml", service("z", "1"))
	r.untilServices("z=1")
	r.until("the warning", func() bool { return r.log.Count("objects of the kind Deployment (apps/v1) are ignored") > 0 })
	r.replace("z.yaml", service("z", "2"))
	r.untilServices("z=2")
	r.replace("z.yaml", "kind: [\n")
	r.untilProblems("the previous content of the file")
	if n := r.log.Count("Deployment"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

func TestAFileThatIsWrittenInPlaceCountsWhenItIsComplete(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir())
	r.write("a.yaml", service("a", "0")+service("b", "0"))
	r.untilServices("a=0 b=0")
	changes, err := r.cluster.Services.Follow()
	must(t, err)
	defer changes.Close()
	for n := range 3 {
		label := fmt.Sprint(n + 1)
		// Empty, half of it, with an error, for longer than the directory waits.
		for _, part := range []string{"", service("a", label), service("a", label) + "apiVer"} {
			r.write("a.yaml", part)
			<-r.looks
		}
		r.write("a.yaml", service("a", label)+service("b", label))
		r.untilServices("a=" + label + " b=" + label)
	}
	changes.Drain(func(s *corev1.Service, deleted bool) {
		if deleted {
			t.Errorf("%s was withdrawn on the way", s.Name)
		}
	})
	r.untilProblems()
	// Objects that are removed in place are withdrawn when they stay removed.
	r.write("a.yaml", service("b", "3"))
	r.untilServices("b=3")
	r.write("a.yaml", "")
	r.untilServices("")
}

func TestKubernetesSwapsALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	update := func(n int, text string) {
		dated := fmt.Sprintf("..2026_%d", n)
		must(t, os.Mkdir(filepath.Join(dir, dated), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, dated, "a.yaml"), []byte(text), 0o600))
		must(t, os.Symlink(dated, filepath.Join(dir, "..tmp")))
		must(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
		if n > 1 {
			must(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..2026_%d", n-1))))
		}
	}
	update(1, service("a", "1"))
	must(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
	r := run(t, dir)
	r.untilServices("a=1")
	for n := 2; n < 6; n++ {
		update(n, service("a", fmt.Sprint(n)))
		r.untilServices(fmt.Sprintf("a=%d", n))
	}
}

func TestADirectoryOfManifestsThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "later")
	r := run(t, dir)
	failed := func() bool { e := r.err.Load(); return e != nil && errors.Is(*e, fs.ErrNotExist) }
	r.until("the error", failed)
	if r.cluster.State().Listed || r.log.Count("does not exist; waiting for it") != 1 {
		t.Errorf("state %+v", r.cluster.State())
	}
	must(t, os.Mkdir(dir, 0o700))
	r.replace("a.yaml", service("a", "1"))
	r.untilServices("a=1")
	// The directory is removed again: the known objects stay, since nothing can be read.
	must(t, os.RemoveAll(dir))
	r.until("the error", failed)
	if got := r.services(); got != "a=1" {
		t.Errorf("without the directory there are %q", got)
	}
}

// A restart with mistakes reads the good documents, and the description is not whole before each file was corrected;
// later mistakes do not change that.
func TestMistakesAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(service("a", "1")+"kind: [\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte(service("b", "1")), 0o600))
	must(t, os.Symlink("/proc/self/mem", filepath.Join(dir, "c.yaml"))) // reading it fails, for root too
	r := run(t, dir)
	must(t, r.cluster.CiliumIdentities.WaitListed(t.Context()))
	r.untilServices("a=1 b=1")
	const until = "the rest of the file counts, and nothing of the own cluster is withdrawn before it is corrected"
	r.untilProblems(until, until)
	if refused := r.cluster.State().Refused; len(refused) != 2 || !strings.Contains(refused[0], until) {
		t.Errorf("refused is %q", refused)
	}
	r.replace("a.yaml", service("a", "2"))
	r.untilServices("a=2 b=1")
	if r.isWhole() {
		t.Error("whole although a file was never read")
	}
	r.replace("b.yaml", "kind: [\n") // which was good before
	r.replace("c.yaml", service("c", "1"))
	r.untilServices("a=2 b=1 c=1")
	r.until("the whole", r.isWhole)
	r.replace("d.yaml", service("d", "1")+"kind: [\n")
	r.untilProblems("the previous content of the file stays in use", "the rest of the file counts")
	if refused := r.cluster.Refused(); !r.isWhole() || strings.Contains(refused[1], "withdrawn") {
		t.Errorf("refused is %q", refused)
	}
}

// A file with mistakes that is removed is not waited for.
func TestAMistakeThatIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("kind: [\n"), 0o600))
	r := run(t, dir)
	r.untilProblems("document 1")
	if r.isWhole() {
		t.Error("whole with a mistake")
	}
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	r.untilProblems()
	r.until("the whole", r.isWhole)
}

// At the start nothing is read that may be half written, be it emptied or gone.
func TestFilesThatAreWrittenAtTheStart(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]func(path string) error{
		"half": func(path string) error { return os.WriteFile(path, []byte(service("a", "1")), 0o600) },
		"none": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"gone": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "a.yaml")
			full := service("a", "1") + service("b", "1")
			must(t, os.WriteFile(path, []byte(full), 0o600))
			must(t, half(path))
			s := source(t, dir)
			s.dir.Confirm = 2 * time.Second
			found := make(chan map[string]*file)
			go func() {
				l, _ := s.scan(t.Context())
				found <- l.Files
			}()
			must(t, os.WriteFile(path, []byte(full), 0o600))
			if f := (<-found)["a.yaml"]; f == nil || len(f.documents) != 2 {
				t.Errorf("read was %+v", f)
			}
		})
	}
}

// TestADirectoryThatChangesAllTheTime is read at once, but not taken for all that there is before it is calm.
func TestADirectoryThatChangesAllTheTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(service("a", "1")), 0o600))
	stop, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var gap time.Duration // between two writes: the machine may be slow
		for n, last := 0, time.Now(); ; n++ {
			select {
			case <-stop:
				longest <- max(gap, time.Since(last))
				return
			case <-time.After(5 * time.Millisecond):
				err := os.WriteFile(filepath.Join(dir, ".tmp"), []byte(service("b", fmt.Sprint(n))), 0o600)
				if err := cmp.Or(err, os.Rename(filepath.Join(dir, ".tmp"), filepath.Join(dir, "b.yaml"))); err != nil {
					t.Error(err)
				}
				gap, last = max(gap, time.Since(last)), time.Now()
			}
		}
	}()
	r := run(t, dir)
	r.until("the first state", func() bool { return strings.HasPrefix(r.services(), "a=1") })
	whole := r.isWhole()
	close(stop)
	if gap := <-longest; whole && gap < 100*time.Millisecond {
		t.Errorf("it is whole while it changes, every %s at the most", gap)
	}
	r.until("that it is whole", r.isWhole)
}

// A directory without recent changes is read at once, regardless of other clocks.
func TestFilesThatAreOldAreReadAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []struct {
		name string
		age  time.Duration
	}{{"a.yaml", 3 * time.Hour}, {"b.yaml", -time.Hour}, {"", 3 * time.Hour}} { // the directory at last
		path := filepath.Join(dir, f.name)
		if f.name != "" {
			must(t, os.WriteFile(path, []byte(service("x", "1")), 0o600))
		}
		at := time.Now().Add(-f.age)
		must(t, os.Chtimes(path, at, at))
	}
	s := source(t, dir)
	s.dir.Confirm = 2 * time.Hour
	l, err := s.scan(t.Context())
	if err != nil || len(l.Files) != 2 {
		t.Errorf("read were %v, %v", l.Files, err)
	}
}
