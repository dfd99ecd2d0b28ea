package main

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// completions are what the shell would offer for the last word.
func completions(c command, words ...string) []string {
	got := c.run(append([]string{"__complete"}, words...)...)
	var offered []string
	for line := range strings.Lines(got.out) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(word, ":") {
			offered = append(offered, word)
		}
	}
	return offered
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	a := newAgent(t, well("c2", 2), well("c30", 30), well("d4", 4))
	dir := meshDirectory(t, map[string]string{"c2": "endpoints: [x]", "d5": "endpoints: [x]", "ca.crt": ""})
	here, nowhere := with(nil, a.socket, a.address), with(nil, "/nonexistent/agent.sock", "127.0.0.1:1")
	for _, test := range []struct {
		of    command
		words string // the last one is being written; _ for none
		want  []string
	}{
		{nowhere, "get clus", []string{"clusters"}},
		{nowhere, "get _", resourceNames()},
		{nowhere, "get clusters _", nil},
		{here, "get clusters _", []string{"c2", "c30", "d4"}},
		{here, "get cluster c", []string{"c2", "c30"}},
		{here, "get nodes _", []string{"c2/n1"}},
		{here, "get svc def", []string{"default/web"}},
		{here, "get health cl", []string{"clustermesh"}},
		{here, "get ips _", nil},
		{here, "get gremlins _", nil},
		{here, "describe nodes _", []string{"c2/n1"}},
		{here, "get nodes c2/n1 _", nil},
		{here, "get nodes -c d", []string{"d4"}},
		{here, "get nodes -o j", []string{"json"}},
		{here, "status d", []string{"d4"}},
		{here, "status c2 _", nil},
		{here, "status --for s", []string{"synced"}},
		{nowhere, "status _", nil},
		{here, "log-level w", []string{"warn"}},
		{here, "kvstore st", []string{"status"}},
		{here, "kvstore get --clustermesh-config " + dir + " --cluster _", []string{"c2", "d5"}},
		{here, "kvstore list -o p", []string{"plain"}},
		{here, "config check -o y", []string{"yaml"}},
		{here, "conf", []string{"config"}},
		{here, "describe no", []string{"nodes"}},
		{here, "completion z", []string{"zsh"}},
	} {
		words := strings.Fields(test.words)
		if last := len(words) - 1; words[last] == "_" {
			words[last] = ""
		}
		if got := completions(test.of, words...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.words, got, test.want)
		}
	}
	real := program(t, "__complete", "run", "--log-format", "")
	out, err := real.Output()
	if err != nil || !strings.HasPrefix(string(out), "text\njson\n") {
		t.Errorf("run --log-format: %v %s", err, out)
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for shell, parts := range map[string][]string{
		"bash":       {"__start_mesh-agent", "complete -o default -F __start_mesh-agent mesh-agent", "__complete"},
		"zsh":        {"#compdef mesh-agent", "_mesh-agent", "__complete"},
		"fish":       {"complete -c mesh-agent", "__complete"},
		"powershell": {"Register-ArgumentCompleter -CommandName 'mesh-agent'", "__complete"},
	} {
		out, errs, code := call(t, "completion", shell)
		if code != exitOK || errs != "" {
			t.Errorf("%s: exit %d, %s", shell, code, errs)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("%s: %q is not in the script", shell, part)
			}
		}
	}
}

// TestASocketOfOthers: whoever may not open the socket is told why.
func TestASocketOfOthers(t *testing.T) {
	t.Parallel()
	denied := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", fs.ErrPermission)}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"denied": {fmt.Errorf("%w: %w", client.ErrUnreachable, denied), "owner and group"},
		"gone":   {fmt.Errorf("%w: %w", client.ErrUnreachable, fs.ErrNotExist), "is it running?"},
	} {
		var errs strings.Builder
		root := (&cli{getenv: os.Getenv}).root(&cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return test.err }})
		root.SetErr(&errs)
		if code := execute(root, []string{"run"}); code != exitUsage || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%s: exit %d, %s", name, code, &errs)
		}
	}
}

// TestWaitForAnAgentThatSaysNothing: to accept a connection is no answer.
func TestWaitForAnAgentThatSaysNothing(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := with(nil, "", "").run("status", "--wait", "--timeout", "50ms", "--socket", l.Addr().String())
	if got.code != exitUsage || !strings.Contains(got.err, "gave up after 50ms") || !strings.Contains(got.err, "has not answered once") || got.out != "" {
		t.Errorf("%+v", got)
	}
}
