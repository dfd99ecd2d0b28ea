package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/children"
	"github.com/mesh-agent/mesh-agent/simtest/ports"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// shell runs a script, and returns what it printed.
func shell(t *testing.T, script string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(waittest.Context(t), "/bin/sh", append([]string{"-euc", script, "sh"}, args...)...).CombinedOutput()
	return string(out), err
}

// needs skips a test that uses programs which are not there.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: apt-get install dpkg man-db systemd util-linux", name)
		}
	}
}

// TestThePackages makes the packages of a release, and uses the contents of the Debian package.
func TestThePackages(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	needs(t, "dpkg-deb")
	bin, root := t.TempDir(), filepath.Join(t.TempDir(), "root")
	buildtest.Released(t, "build", "-o", bin+"/", "github.com/mesh-agent/mesh-agent/cmd/mesh-agent", "github.com/mesh-agent/mesh-agent/cmd/mesh-sim")
	if out, err := shell(t, "packages/build v1.2.3 $1", bin); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	deb := filepath.Join(bin, "packages", "mesh-agent_1.2.3_"+runtime.GOARCH+".deb")
	list, err := shell(t, "dpkg-deb -c $1; dpkg-deb -f $1; dpkg-deb -x $1 $2", deb, root)
	if err != nil {
		t.Fatalf("%v\n%s", err, list)
	}

	t.Run("contents", func(t *testing.T) {
		t.Parallel()
		for _, want := range []string{
			"-rwxr-xr-x root/root ./usr/bin/mesh-agent", "-rwxr-xr-x root/root ./usr/bin/mesh-sim",
			"-rw-r--r-- root/root ./usr/lib/systemd/system/mesh-agent.service", "-rw-r--r-- root/root ./usr/lib/sysusers.d/mesh-agent.conf",
			"-rw-r--r-- root/root ./etc/mesh-agent/config.yaml", "-rw-r--r-- root/root ./etc/default/mesh-agent", "drwxr-x--- root/root ./etc/mesh-agent/clusters/",
			"-rw-r--r-- root/root ./usr/share/man/man1/mesh-agent.1.gz", "-rw-r--r-- root/root ./usr/share/man/man1/mesh-agent-top.1.gz",
			"-rw-r--r-- root/root ./usr/share/man/man1/mesh-sim.1.gz", "-rw-r--r-- root/root ./usr/share/bash-completion/completions/mesh-sim",
			"-rw-r--r-- root/root ./usr/share/bash-completion/completions/mesh-agent", "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_mesh-agent",
			"-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/mesh-agent.fish", "-rw-r--r-- root/root ./usr/share/doc/mesh-agent/copyright",
			"-rw-r--r-- root/root ./usr/share/doc/mesh-agent/notices.txt", "-rw-r--r-- root/root ./usr/share/doc/mesh-agent/notices-mesh-sim.txt",
		} {
			if !hasEntry(list, want) {
				t.Errorf("there is no %s", want)
			}
		}
		if !strings.Contains(list, "Version: 1.2.3\n") || !strings.Contains(list, "License: Apache-2.0\n") {
			t.Error(list)
		}
		rpm, err := filepath.Glob(filepath.Join(bin, "packages", "mesh-agent-1.2.3-1.*.rpm"))
		if err != nil || len(rpm) != 1 {
			t.Fatalf("%v, %v", rpm, err)
		}
		if lead, err := os.ReadFile(rpm[0]); err != nil || !bytes.HasPrefix(lead, []byte("\xed\xab\xee\xdb")) {
			t.Errorf("%s is no package: %v", rpm[0], err)
		}
	})
	t.Run("unit", func(t *testing.T) {
		t.Parallel()
		needs(t, "systemd-analyze", "man")
		// The program and its man pages are where they were unpacked.
		out, err := shell(t, `sed "s,/usr/bin/mesh-agent,$1&," $1/usr/lib/systemd/system/mesh-agent.service >$2/mesh-agent.service
			MANPATH=$1/usr/share/man systemd-analyze verify $2/mesh-agent.service`, root, t.TempDir())
		if err != nil || out != "" {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("demo", func(t *testing.T) {
		t.Parallel()
		runDemo(t, filepath.Join(root, "usr", "bin", "mesh-agent"), filepath.Join(root, "etc", "mesh-agent", "config.yaml"))
	})
	t.Run("installation", func(t *testing.T) {
		t.Parallel()
		install(t, deb)
	})
}

// hasEntry reports whether a list of dpkg-deb has a file with this mode, owner and name.
func hasEntry(list, want string) bool {
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) >= 6 && f[0]+" "+f[1]+" "+f[5] == want {
			return true
		}
	}
	return false
}

// runDemo runs the demo, in which the agent takes the settings of the package, until its own status is well.
func runDemo(t *testing.T, program, settings string) {
	tmp, err := os.MkdirTemp("", "demo") // short: the path of a socket has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	address, err := ports.Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(address.Release)
	socket, said := filepath.Join(tmp, "a.sock"), new(waittest.Output)
	demo := exec.Command(program, "demo", "--dns", "", "--listen", address.Addr(), "--socket", socket, "--", "--clusters", "2", "--nodes", "2")
	demo.Stdout, demo.Stderr = said, said
	demo.SysProcAttr = children.Attributes()
	demo.Env = append(os.Environ(), "MESH_AGENT_CONFIG="+settings, "MESH_AGENT_STATE_DIR="+tmp)
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- demo.Wait() }()
	defer func() {
		_ = demo.Process.Signal(syscall.SIGTERM)
		if err := waittest.Receive(t, "the end of the demo", ended); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	}()
	var out string
	waittest.Until(t, "two clusters", func() bool {
		out, _ = shell(t, `"$1" top --once --interval 100ms --socket $2`, program, socket)
		return strings.Contains(strings.Join(strings.Fields(out), " "), " of 2 clusters") && strings.Contains(out, "synced") // its first line may be two
	}, said.String, func() string { return out })
}

// install installs, upgrades and purges the package on this system. The changes are in memory, and only this test sees them.
func install(t *testing.T, deb string) {
	needs(t, "unshare", "dpkg", "systemd-sysusers")
	tmp := t.TempDir()
	const within = `mount -t tmpfs tmpfs $1; mkdir $1/upper $1/work $1/root
		mount -t overlay overlay -o lowerdir=/,upperdir=$1/upper,workdir=$1/work $1/root; `
	if out, err := shell(t, `unshare -m sh -euc '`+within+`' sh $1`, tmp); err != nil {
		t.Skipf("no file system over the one of this machine, for which root is needed: %v %s", err, out)
	}
	out, err := shell(t, `unshare -m sh -euc '`+within+`cp $2 $1/root/tmp/mesh-agent.deb
		chroot $1/root sh -euc "
			dpkg -i /tmp/mesh-agent.deb; mesh-agent version; stat -c %U:%G:%a /etc/mesh-agent/clusters; getent passwd mesh-agent
			dpkg -i /tmp/mesh-agent.deb; dpkg --verify mesh-agent
			dpkg -P mesh-agent; test ! -e /etc/mesh-agent; echo gone"' sh $1 $2`, tmp, deb)
	for _, want := range []string{"mesh-agent ", "\nroot:mesh-agent:750\n", "\nmesh-agent:x:", "\ngone\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what was printed", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTheUnitHasLimits: a bug or an attack must not take the memory of the whole machine.
func TestTheUnitHasLimits(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile(filepath.Join("packages", "mesh-agent.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MemoryMax", "MemorySwapMax", "TasksMax", "LimitNOFILE"} {
		if !strings.Contains(string(unit), "\n"+want+"=") {
			t.Errorf("there is no %s", want)
		}
	}
}
