package cli_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Well("c30", 30), clitest.Well("d4", 4))
	dir := clitest.MeshDirectory(t, map[string]string{"c2": "endpoints: [x]", "d5": "endpoints: [x]", "ca.crt": ""})
	here, nowhere := clitest.With(nil, a.Socket, a.Address), clitest.With(nil, "/nonexistent/agent.sock", "127.0.0.1:1")
	for _, test := range []struct {
		of    clitest.Command
		words string // the last word is incomplete; _ for an empty one
		want  []string
	}{
		{nowhere, "get clus", []string{"clusters"}},
		{nowhere, "get _", resource.Names()},
		{nowhere, "get clusters _", nil},
		{here, "get clusters _", []string{"c2", "c30", "d4"}},
		{here, "get cluster c", []string{"c2", "c30"}},
		{here, "get nodes _", []string{"c2/n1"}},
		{here, "get svc def", []string{"default/web"}},
		{here, "get health cl", []string{"clustermesh"}},
		{here, "get ips _", nil},
		{here, "get ips 10", nil},
		{here, "get ips 10.2.", []string{"10.2.1.10/32"}},
		{here, "describe ip 10.2.1.1", []string{"10.2.1.10/32"}},
		{here, "lookup _", nil},
		{here, "lookup 10.", []string{"10.2.1.10"}},
		{here, "lookup 10.2.1.1", []string{"10.2.1.10"}},
		{here, "lookup 10.3.", nil},
		{here, "lookup fd00:", nil},
		{here, "lookup fd00::1:", nil},
		{here, "lookup 10.2.1.10.", nil},
		{here, "lookup x.", nil},
		{here, "lookup 10.2.1.10 10.", nil},
		{nowhere, "lookup 10.", nil},
		{here, "xds resolve d", []string{"default/web"}},
		{here, "top c3", []string{"c30"}},
		{here, "top --sort l", []string{"lag"}},
		{here, "get gremlins _", nil},
		{here, "describe nodes _", []string{"c2/n1"}},
		{here, "get nodes c2/n1 _", nil},
		{here, "get nodes -c d", []string{"d4"}},
		{here, "get svc -n d", []string{"default"}},
		{nowhere, "get nodes --sort-by .cl", []string{".cluster", ".clusterID"}},
		{nowhere, "get gremlins --sort-by _", nil},
		{nowhere, "get nodes -o cu", []string{"custom-columns="}},
		{here, "get conflicts --kind service-", []string{"service-affinity"}},
		{here, "get events --kind conf", []string{"conflict"}},
		{here, "get nodes --kind _", nil},
		{nowhere, "get events --kind _", nil},
		{nowhere, "status --fail-on r", []string{"refusals"}},
		{here, "get nodes -o j", []string{"json", "jsonpath="}},
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
		if got := clitest.Complete(test.of, words...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.words, got, test.want)
		}
	}
	real := agenttest.Program(t, "__complete", "run", "--log-format", "")
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
		out, errs, code := agenttest.Call(t, "completion", shell)
		if code != exit.OK || errs != "" {
			t.Errorf("%s: exit %d, %s", shell, code, errs)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("%s: %q is not in the script", shell, part)
			}
		}
	}
}

// TestCompletionInABareBash: words, flags and their values are completed without the package bash-completion.
func TestCompletionInABareBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "mesh-agent")
	like := agenttest.Program(t)
	wrapper := "#!/bin/sh\nexec " + like.Path + ` "$@"` + "\n"
	agenttest.Must(t, os.WriteFile(program, []byte(wrapper), 0o755))
	script := `
		source <("$1" completion bash)
		compopt() { :; } # bash allows it inside a completion alone
		COMP_LINE=$2 COMP_POINT=${#2}
		__start_mesh-agent 2>&1
		printf '%s\n' "${COMPREPLY[@]}"`
	for line, want := range map[string]string{
		"get clus":             "clusters\n",
		"get nodes -o js":      "json\njsonpath=\n",
		"get nodes --output=y": "yaml\n",
		"status --f":           "--fail-on\n--for\n",
		"lookup   10 --outp":   "--output\n",
		"completion ":          "bash\nfish\npowershell\nzsh\n",
	} {
		cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", script, "bash", program, program+" "+line)
		cmd.Env = like.Env
		out, err := cmd.CombinedOutput()
		var words []string // without their descriptions
		for word := range strings.Lines(string(out)) {
			words = append(words, strings.Fields(word)[0]+"\n")
		}
		if slices.Sort(words); err != nil || strings.Join(words, "") != want {
			t.Errorf("%q: %v %q, want %q", line, err, out, want)
		}
	}
}

// TestASocketOfOthers: if the permissions of the socket deny access, the error names its owner and group.
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
		root := cli.Root(&command.Env{Getenv: func(string) string { return "" }}, &cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return test.err }})
		root.SetErr(&errs)
		if code := command.Execute(root, []string{"run"}); code != exit.Usage || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%s: exit %d, %s", name, code, &errs)
		}
	}
}

// TestWaitForAnAgentThatSaysNothing: an accepted connection does not count as an answer.
func TestWaitForAnAgentThatSaysNothing(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	agenttest.Must(t, err)
	defer l.Close()
	got := clitest.With(nil, "", "").Run("status", "--wait", "--timeout", "50ms", "--socket", l.Addr().String())
	if got.Code != exit.Usage || !strings.Contains(got.Err, "stopped after 50ms") || !strings.Contains(got.Err, "has not answered once") || got.Out != "" {
		t.Errorf("%+v", got)
	}
}

func TestMain(m *testing.M) { agenttest.Main(m) }
