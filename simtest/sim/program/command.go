package program

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/simtest/children"
)

// commandGrace is how long a command may take to end after SIGTERM, before it is killed.
const commandGrace = 12 * time.Second

// runCommand runs a program until it ends, with more environment variables ("NAME=value"). Its output goes to the
// simulator's standard output and error, or to a log. When ctx ends, the program and its children get SIGTERM, and
// after a delay SIGKILL; its end is then no error, with any exit code. The program has a process group of its own, so
// that a Ctrl-C in the terminal reaches it once, through the simulator.
func runCommand(ctx context.Context, command, env []string, log *os.File) error {
	if ctx.Err() != nil {
		return nil
	}
	// When the simulator is killed, a Linux kernel sends the signal at the end of the thread that started the program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if log != nil {
		cmd.Stdout, cmd.Stderr = log, log
	}
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = children.Attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = commandGrace
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		if log != nil {
			fmt.Fprint(os.Stderr, lastLines(log))
		}
		return fmt.Errorf("%s: %w", command[0], err)
	}
	return nil
}

// How much of the log of a failed command is shown.
const (
	shownLines = 10
	shownBytes = 16 << 10
)

// lastLines are the last lines of a log, which contain the reason for the end of its program.
func lastLines(log *os.File) string {
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	start := max(0, size-shownBytes)
	text := make([]byte, size-start)
	n, _ := log.ReadAt(text, start)
	lines := strings.SplitAfter(string(text[:n]), "\n")
	return strings.Join(lines[max(0, len(lines)-1-shownLines):], "")
}

// openLog opens the log of a command, which only its user may read. Without a path it returns nil.
func openLog(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	log, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of the command: %w", err)
	}
	return log, nil
}

// expand fills in the directory of the client files ({dir}), the local cluster's client file ({local}), the control
// socket ({ctl}), and a directory for sockets and similar files ({tmp}).
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

// screen shows command lines to try on an agent that was started by the command. With the lines before it, it fits a
// terminal of 24 lines with 80 columns, and the last line is only the URL of the page, to be clicked and copied.
func (m mesh) screen(command []string) string {
	first := m.Clusters()[0].Cluster().Name
	sample := m.Clusters()[0].Sample()
	agent, flags := command[0]+" ", agentFlags(command)
	lines := [][2]string{
		{agent + "status" + flags, "the clusters, and what is wrong"},
		{agent + "top" + flags, "what changes, live"},
		{agent + "get services -o wide" + flags, "services of all clusters"},
	}
	if sample.Pod.IsValid() {
		lines = append(lines, [2]string{agent + "lookup " + sample.Pod.String() + flags, "a pod"})
	}
	if sample.Node.IsValid() {
		lines = append(lines, [2]string{agent + "lookup " + sample.Node.String() + flags, "a node"})
	}
	if namespace, name, found := strings.Cut(sample.Service, "/"); found {
		if host, port, err := net.SplitHostPort(flagValue(command, "--dns")); err == nil {
			name := name + "." + namespace + ".svc.clusterset.local"
			lines = append(lines, [2]string{"dig @" + host + " -p " + port + " " + name, "its backends"})
		}
		if flagValue(command, "--xds") != "" {
			lines = append(lines, [2]string{agent + "xds resolve " + sample.Service + ":http" + flags, "the same, as gRPC gets it"})
		}
	}
	lines = append(lines, [][2]string{
		{os.Args[0] + " ctl freeze " + first + " --for 1m", "an etcd that does not answer"},
		{os.Args[0] + " ctl remove " + first, "put it back with add"},
		{os.Args[0] + " ctl --help", "more faults"},
	}...)
	text := "\nTry in another terminal:\n" + columns(lines) + "Ctrl-C here ends everything and removes what was made.\n"
	if url := page(command); url != "" {
		text += "\nThe mesh in a browser:\n" + url + "\n"
	}
	return text
}

// page is the URL of the page of an agent that was started with these arguments; empty without a page.
func page(command []string) string {
	if flagValue(command, "--ui") == "false" {
		return ""
	}
	return "http://" + agentAddress(command) + "/ui/"
}

// agentAddress is the API address of an agent that was started with these arguments.
func agentAddress(command []string) string {
	return cmp.Or(flagValue(command, "--listen"), "127.0.0.1:9979")
}

// startTime is how long an agent may take to listen before the screen is shown without it.
const startTime = 10 * time.Second

// waitListening waits until a server listens there, at most startTime. It returns early when ctx ends.
func waitListening(ctx context.Context, address string) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		if waiting.Sleep(ctx, 20*time.Millisecond) != nil {
			return
		}
	}
}

// column is the width of a command on the screen; the description of a longer one follows it directly.
const column = 42

// columns writes pairs of a command and its description.
func columns(lines [][2]string) string {
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "  %-*s  # %s\n", min(width, column), l[0], l[1])
	}
	return b.String()
}

// agentFlags are the flags with which a client reaches an agent that was started with these arguments.
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
