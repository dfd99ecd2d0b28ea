package program

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/children"
)

// commandGrace is how long a command may take to end after it was asked to, before it is killed.
const commandGrace = 12 * time.Second

// runCommand runs a program with the simulator's standard output and error, and
// with more environment variables ("NAME=value"), until it ends. When ctx ends, the program and its children get SIGTERM, and after
// a while SIGKILL; that it ended then is no error, whatever its exit code.
// The program has a process group of its own, so that a Ctrl-C in the terminal
// reaches it once, through the simulator.
func runCommand(ctx context.Context, command, env []string) error {
	if ctx.Err() != nil {
		return nil
	}
	// The signal that a Linux kernel sends when the simulator is killed comes when
	// the thread that started the program ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = children.Attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = commandGrace
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	return nil
}

// expand fills in where the client files are ({dir}), the local cluster's client file ({local}),
// the control socket ({ctl}), and a directory for sockets and the like ({tmp}).
func (m mesh) expand(command []string, socket string) []string {
	words := []string{"{dir}", m.Dir(), "{tmp}", m.Temp(), "{ctl}", socket}
	if local, ok := m.Local(); ok {
		words = append(words, "{local}", m.ClientFile(local))
	}
	r := strings.NewReplacer(words...)
	out := make([]string, len(command))
	for i, word := range command {
		out[i] = r.Replace(word)
	}
	return out
}

// hints tells what to try on an agent that was started by the command.
func (m mesh) hints(command []string) string {
	first := m.Clusters()[0].Cluster().Name
	sample := m.Clusters()[0].Sample()
	agent, flags := command[0]+" ", agentFlags(command)
	lines := [][2]string{
		{agent + "status" + flags, "the clusters, and what is wrong if anything"},
		{agent + "top" + flags, "what changes, live"},
		{agent + "get services -o wide" + flags, "services merged across the clusters"},
		{agent + "get ips -c " + first + " -o json" + flags, "the addresses of one cluster"},
	}
	if url := page(command); url != "" {
		lines = append([][2]string{{url, "the mesh in a browser"}}, lines...)
	}
	if sample.Pod.IsValid() {
		lines = append(lines, [2]string{agent + "lookup " + sample.Pod.String() + flags, "pod " + sample.PodName})
	}
	if sample.Node.IsValid() {
		lines = append(lines, [2]string{agent + "lookup " + sample.Node.String() + flags, "node " + sample.NodeName})
	}
	if namespace, name, found := strings.Cut(sample.Service, "/"); found {
		if host, port, err := net.SplitHostPort(flagValue(command, "--dns")); err == nil {
			name := name + "." + namespace + ".svc.clusterset.local"
			lines = append(lines, [2]string{"dig @" + host + " -p " + port + " " + name, "the backends of " + sample.Service + " in all clusters"})
		}
		if flagValue(command, "--xds") != "" {
			lines = append(lines, [2]string{agent + "xds resolve " + sample.Service + ":http" + flags, "the same, as a gRPC program gets it"})
		}
	}
	lines = append(lines, [][2]string{
		{agent + "lookup 192.0.2.1" + flags, "an address that no cluster has"},
		{os.Args[0] + " ctl freeze " + first + " --for 1m", "the etcd of a cluster does not answer for a minute"},
		{os.Args[0] + " ctl remove " + first, "take a cluster out of the mesh, and put it back with add"},
		{os.Args[0] + " ctl --help", "more faults"},
	}...)
	return "\nTry in another terminal:\n" + columns(lines) +
		"Ctrl-C here ends everything and removes what was made.\n\n"
}

// page is where a browser finds an agent that was started with these arguments; empty for nowhere.
func page(command []string) string {
	if flagValue(command, "--ui") == "false" {
		return ""
	}
	return "http://" + cmp.Or(flagValue(command, "--listen"), "127.0.0.1:9979") + "/ui/"
}

// columns writes pairs of a command and what it shows.
func columns(lines [][2]string) string {
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "  %-*s  # %s\n", width, l[0], l[1])
	}
	return b.String()
}

// agentFlags are the flags with which a client reaches an agent started with these arguments.
func agentFlags(command []string) string {
	for _, of := range [][2]string{{"--socket", " --socket "}, {"--listen", " --server http://"}} {
		if value := flagValue(command, of[0]); value != "" {
			return of[1] + value
		}
	}
	return ""
}

// flagValue is the value of a flag among arguments; empty without it.
func flagValue(command []string, flag string) string {
	for i, word := range command {
		if value, ok := strings.CutPrefix(word, flag+"="); ok {
			return value
		}
		if word == flag && i+1 < len(command) {
			return command[i+1]
		}
	}
	return ""
}
