package sim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// commandGrace is how long a command may take to end after it was asked to,
// before it is killed.
const commandGrace = 12 * time.Second

// RunCommand runs a program with the simulator's standard output and error
// until it ends. When ctx ends, the program and its children get SIGTERM, and after
// a while SIGKILL; that it ended then is no error, whatever its exit code.
// The program has a process group of its own, so that a Ctrl-C in the terminal
// reaches it once, through the simulator.
func RunCommand(ctx context.Context, command []string) error {
	if ctx.Err() != nil {
		return nil
	}
	// The signal that a Linux kernel sends when the simulator is killed comes when
	// the thread that started the program ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the person at the terminal says what to run
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = ownProcessGroup()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = commandGrace
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	return nil
}

// expand fills in where the client files are ({dir}) and a directory for
// sockets and the like ({tmp}).
func (m *Mesh) expand(command []string) []string {
	r := strings.NewReplacer("{dir}", m.Dir(), "{tmp}", m.Temp())
	out := make([]string, len(command))
	for i, word := range command {
		out[i] = r.Replace(word)
	}
	return out
}

// hints tells what to try on an agent that was started by the command.
func (m *Mesh) hints(command []string) string {
	first := m.clusters[0]
	last := m.clusters[len(m.clusters)-1]
	sample := first.Sample()
	agent := command[0] + " "
	flags := agentFlags(command)
	var b strings.Builder
	b.WriteString("\nTry in another terminal:\n")
	try := func(words, what string) { fmt.Fprintf(&b, "  %-60s  # %s\n", agent+words+flags, what) }
	try("status", "what is wrong, if anything")
	try("get clusters", "the clusters of the mesh")
	try("get services -o wide", "services merged across the clusters")
	if sample.Service != "" {
		try("describe service "+sample.Service, "one of them, and where its backends come from")
	}
	try("get ips -c "+first.Cluster().Name+" -o json", "the addresses of one cluster")
	if sample.Pod.IsValid() {
		try("lookup "+sample.Pod.String(), "pod "+sample.PodName)
	}
	if sample.Node.IsValid() {
		try("lookup "+sample.Node.String(), "node "+first.model.nodeName(0))
	}
	try("lookup 192.0.2.1", "nobody's address")
	try("get services -w", "changes as they come")
	fmt.Fprintf(&b, "  %-60s  # take a cluster out of the mesh\n", "rm "+m.dir.file(last.Cluster().Name))
	b.WriteString("Ctrl-C here ends everything and removes what was made.\n\n")
	return b.String()
}

// agentFlags are the flags with which a client reaches an agent started with
// these arguments.
func agentFlags(command []string) string {
	for i, word := range command {
		for flag, client := range map[string]string{"--socket": " --socket ", "--listen": " --server http://"} {
			if value, ok := strings.CutPrefix(word, flag+"="); ok {
				return client + value
			}
			if word == flag && i+1 < len(command) {
				return client + command[i+1]
			}
		}
	}
	return ""
}
