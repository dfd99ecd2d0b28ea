// Package clitest runs command lines in the process of a test, against an agent whose contents the test sets.
package clitest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/troubleshoot"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// Unpack returns the files of an archive by their names in its folder.
func Unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatalf("%v: %.200q", err, archive)
	}
	files := make(map[string]string)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		folder, name, ok := strings.Cut(h.Name, "/")
		if !ok || !regexp.MustCompile(`^mesh-agent-bugreport-[\w.-]+-\d{8}T\d{6}Z$`).MatchString(folder) || h.Mode != 0o600 {
			t.Errorf("%s, mode %o", h.Name, h.Mode)
		}
		files[name] = string(content)
	}
}

// Result is the exit code and the output of a command line.
type Result struct {
	Code     int
	Out, Err string
}

// Command is a command line before it is run.
type Command struct {
	Cli *command.Env
}

// Began is the time at which the heartbeats of the tests' clusters are written, and the present time of the code that
// checks them: on a busy machine minutes may pass in between.
var Began = time.Now()

// With returns a command line in an environment, with these default places of an agent.
func With(env map[string]string, socket, server string) Command {
	return Command{&command.Env{
		Getenv:        func(name string) string { return env[name] },
		Environ:       func() []string { return printer.SortedLabels(env) },
		DefaultSocket: socket, DefaultServer: server, Poll: 5 * time.Millisecond, Completion: time.Hour, Now: func() time.Time { return Began },
	}}
}

// Run runs a command line.
func (c Command) Run(args ...string) Result {
	var out, errs bytes.Buffer
	root := cli.Root(c.Cli, &cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return nil }})
	root.SetOut(&out)
	root.SetErr(&errs)
	code := command.Execute(root, args)
	return Result{code, out.String(), errs.String()}
}

// Patient runs a command line. While there is no answer in time, it repeats with twice the timeout.
func Patient(run func(args ...string) Result, args ...string) Result {
	for {
		got := run(args...)
		i := slices.Index(args, "--timeout") + 1
		if i == 0 || !strings.Contains(got.Err, "has not answered once") {
			return got
		}
		d, err := time.ParseDuration(args[i])
		if err != nil {
			return got
		}
		args[i] = (2 * d).String()
	}
}

// Ask runs a command line against this agent.
func (a *Agent) Ask(args ...string) Result {
	return With(nil, "/nonexistent", "127.0.0.1:1").Run(append(args, "--server", a.Server)...)
}

// Has reports whether a text contains want; if want is empty, the text must be empty.
func Has(text, want string) bool {
	if want == "" {
		return text == ""
	}
	return strings.Contains(text, want)
}

// Complete returns the shell's suggestions for the last word.
func Complete(c Command, words ...string) []string {
	got := c.Run(append([]string{"__complete"}, words...)...)
	var offered []string
	for line := range strings.Lines(got.Out) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(word, ":") {
			offered = append(offered, word)
		}
	}
	return offered
}

// MeshDirectory writes client files and returns their directory.
func MeshDirectory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Checker runs config check with deadlines that a busy machine meets.
func Checker(args ...string) Result {
	return Troubleshooter().Run(append([]string{"config", "check"}, args...)...)
}

// CheckerNow is Checker for clusters whose heartbeats are written continuously.
func CheckerNow(args ...string) Result {
	c := Troubleshooter()
	c.Cli.Troubleshooting.Now = time.Now()
	return c.Run(append([]string{"config", "check"}, args...)...)
}

// CheckResult compares a result with one whose texts are parts of the expected output.
func CheckResult(t *testing.T, args string, got, want Result) {
	t.Helper()
	if got.Code != want.Code || !strings.Contains(got.Out, want.Out) || !strings.Contains(got.Err, want.Err) {
		t.Errorf("identity %s: exit %d\n%s%s\nwant exit %d, %q on stdout and %q on stderr",
			args, got.Code, got.Out, got.Err, want.Code, want.Out, want.Err)
	}
}

// Want compares lines.
func Want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Troubleshooter runs the command with deadlines that a busy machine meets, and without DNS.
func Troubleshooter() Command {
	c := With(nil, "/nonexistent/agent.sock", "127.0.0.1:1")
	c.Cli.Troubleshooting = troubleshoot.Options{
		Now: Began,
		Timings: troubleshoot.Timings{
			Resolve: time.Hour, Dial: time.Hour, TLS: time.Hour,
			Etcd: time.Hour, Read: time.Hour, Total: time.Hour,
		},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	}
	return c
}

// PlainCluster runs an etcd with the keys of this cluster, except the key without, if it is given.
func PlainCluster(t *testing.T, name, without string) *etcdtest.Server {
	t.Helper()
	s := etcdtest.Start(t)
	s.Put(t, wire.HeartbeatKey, string(wire.EncodeTimestamp(Began)), wire.ClusterConfigKey(name), `{"id":2,"capabilities":{}}`)
	if without != "" {
		s.Delete(t, without)
	}
	return s
}
