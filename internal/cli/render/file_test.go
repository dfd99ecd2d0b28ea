package render_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestNoneOrAll: when one of several files cannot be rendered, or its check fails, none is replaced. A check sees each
// new file before any is replaced.
func TestNoneOrAll(t *testing.T) {
	t.Parallel()
	_, a := newMesh(t)
	good, bad, empty := a.file("good", "good"), a.file("bad", "bad"), a.file("empty", "")
	one, two := a.file("one", "old"), a.file("two", "old")
	check := `grep -q good "$FILE" && grep -q old ` + one + " " + two
	for name, args := range map[string][]string{
		"a check of the last":   {"-t", good + "=" + one, "-t", bad + "=" + two, "--check", check},
		"a check of the first":  {"-t", bad + "=" + one, "-t", good + "=" + two, "--check", check},
		"no template":           {"-t", good + "=" + one, "-t", a.dir + "/nope=" + two},
		"a mistake":             {"-t", good + "=" + one, "-t", a.file("mistake", "{{ nope }}") + "=" + two},
		"a control character":   {"-t", good + "=" + one, "-t", a.file("control", "\x01") + "=" + two},
		"an empty file":         {"-t", good + "=" + one, "-t", empty + "=" + two, "--refuse-empty"},
		"what is no file":       {"-t", good + "=" + one, "-t", good + "=" + a.dir},
		"no such directory":     {"-t", good + "=" + one, "-t", good + "=" + two + "/x"},
		"two failures together": {"-t", bad + "=" + one, "-t", bad + "=" + two, "--check", check},
	} {
		_, said, err := a.run(t.Context(), append(args, "--once", "--exec", "echo ran >> "+filepath.Join(a.dir, "log"))...)
		if err == nil || said != "" || a.has("one") != "old" || a.has("two") != "old" || !strings.Contains(a.has("log"), "no such file") {
			t.Errorf("%s: %v, said %q, the files have %q and %q", name, err, said, a.has("one"), a.has("two"))
		}
		if left, _ := filepath.Glob(filepath.Join(a.dir, ".*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
		if name == "two failures together" && (!strings.Contains(err.Error(), one+" stays") || !strings.Contains(err.Error(), two+" stays")) {
			t.Errorf("not both are reported: %v", err)
		}
	}
	if _, _, err := a.run(t.Context(), "--once", "-t", good+"="+one, "-t", good+"="+two, "--check", check); err != nil || a.has("one") != "good" || a.has("two") != "good" {
		t.Errorf("%v, the files have %q and %q", err, a.has("one"), a.has("two"))
	}
}

// TestLinksStay: the target of a link is replaced, or created if it does not exist.
func TestLinksStay(t *testing.T) {
	t.Parallel()
	_, a := newMesh(t)
	tmpl := a.file("t", "new")
	a.file("target", "old")
	for link, to := range map[string]string{"link": "target", "link2": "link", "dangling": "missing", "absolute": filepath.Join(a.dir, "missing2")} {
		waittest.Must(t, os.Symlink(to, filepath.Join(a.dir, link)))
	}
	for link, target := range map[string]string{"link2": "target", "dangling": "missing", "absolute": "missing2"} {
		path := filepath.Join(a.dir, link)
		_, _, err := a.run(t.Context(), "--once", "-t", tmpl+"="+path)
		if info, e := os.Lstat(path); err != nil || e != nil || info.Mode()&os.ModeSymlink == 0 || a.has(target) != "new" {
			t.Errorf("%s: %v, %v, the target has %q", link, err, e, a.has(target))
		}
	}
	waittest.Must(t, os.Symlink("loop", filepath.Join(a.dir, "loop")))
	if _, _, err := a.run(t.Context(), "--once", "-t", tmpl+"="+filepath.Join(a.dir, "loop")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
}

// TestMountedFiles: a file that is itself a mount point, also in a read-only directory, is written in place, and this
// is reported once. The check gets the new contents.
func TestMountedFiles(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	a := newAgent(t)
	a.Play(t, "service own shop/cart 10.0.0.1 10.0.0.2")
	var args []string
	mount := func() error { return nil }
	for _, name := range []string{"beside", "readonly"} {
		dir := filepath.Join(a.dir, name)
		waittest.Must(t, os.Mkdir(dir, 0o700))
		a.file(name+"/mounted", "")
		a.file(name+".real", "old text, which is longer than the new one, as it has to be cut off at the end")
		args = append(args, "-t", a.file(name+".tmpl", upstream)+"="+filepath.Join(dir, "mounted"))
		before := mount
		mount = func() error {
			if err := before(); err != nil {
				return err
			}
			if name == "readonly" {
				if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
					return err
				}
				if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
					return err
				}
			}
			return syscall.Mount(filepath.Join(a.dir, name+".real"), filepath.Join(dir, "mounted"), "", syscall.MS_BIND, "")
		}
	}
	refusal := a.file("check", `grep -q server "$FILE" && ! grep -q 10.9 "$FILE"`)
	ready := make(chan error, 1)
	ended := make(chan error, 1)
	said := new(waittest.Output)
	ctx := t.Context()
	go func() {
		runtime.LockOSThread() // never unlocked: the thread has mounts of its own, and ends with the goroutine
		err := syscall.Unshare(syscall.CLONE_NEWNS)
		if err == nil {
			err = syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
		}
		if err == nil {
			err = mount()
		}
		ready <- err
		if err == nil {
			_, err = a.runTo(ctx, said, append(args, "--wait", "10ms", "--check", "sh "+refusal, "--exec", "echo ran")...)
		}
		ended <- err
	}()
	if err := <-ready; err != nil {
		t.Skipf("no mounts here: %v", err)
	}
	has := func(want string) {
		t.Helper()
		waittest.Until(t, "the files to have "+want, func() bool { return a.has("beside.real") == want && a.has("readonly.real") == want }, said.String)
	}
	has("server 10.0.0.1:8080;\nserver 10.0.0.2:8080;\n")
	a.Play(t, "service own shop/cart 10.9.0.1")
	await(t, said, "stays as it is: --check")
	has("server 10.0.0.1:8080;\nserver 10.0.0.2:8080;\n")
	a.Play(t, "service own shop/cart 10.0.0.3")
	has("server 10.0.0.3:8080;\n")
	waittest.Until(t, "the command to have run twice", func() bool { return said.Count("ran echo ran") == 2 }, said.String)
	for _, name := range []string{"beside", "readonly"} {
		if n := said.Count(filepath.Join(name, "mounted") + " cannot be replaced as a whole"); n != 1 {
			t.Errorf("%s was reported %d times: %s", name, n, said)
		}
		if left, _ := filepath.Glob(filepath.Join(a.dir, name, ".*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if text := a.has(name + "/mounted"); text != "" {
			t.Errorf("what is below the mount has %q", text)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), ".mounted*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
