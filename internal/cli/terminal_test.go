package cli_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/terminaltest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// onTerminal starts a command line of the real program on a terminal.
func onTerminal(t *testing.T, width, height uint16, args ...string) (cmd *exec.Cmd, written *waittest.Output) {
	t.Helper()
	cmd, _, written = typing(t, width, height, args...)
	return cmd, written
}

// typing starts a command line on a terminal, whose keyboard the test types on.
func typing(t *testing.T, width, height uint16, args ...string) (cmd *exec.Cmd, keyboard io.Writer, written *waittest.Output) {
	t.Helper()
	terminal, keyboard, written := terminaltest.Open(t, width, height)
	cmd = agenttest.Program(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
	agenttest.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, keyboard, written
}

// TestKeysOfTop: they change the order and the filter at once, and end the command; then the terminal has its former
// state.
func TestKeysOfTop(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Lost("c3"))
	cmd, keyboard, written := typing(t, 100, 24, "top", "--interval", "1h", "--server", a.Server)
	last := func() string {
		all := strings.Split(written.String(), "\x1b[J")
		return all[max(len(all)-2, 0)] // each text ends with the escape sequence
	}
	for _, step := range []struct{ keys, has, hasNot string }{
		{"", "s sort: rate   / filter: none   q quit", ""},
		{"s", "s sort: entries", ""},
		{"/c", "/ filter: c_ (Enter: done, Esc: none)", ""},
		{"3\r", "/ filter: c3   q", "c2  "},
		{"/qx", "No cluster and no resource has the text", "c3  "},
		{"\x1b", "/ filter: none", ""},
	} {
		_, err := io.WriteString(keyboard, step.keys)
		agenttest.Must(t, err)
		waittest.Until(t, step.has, func() bool {
			text := last()
			return strings.Contains(text, step.has) && (step.hasNot == "" || !strings.Contains(text, step.hasNot))
		}, written.String)
	}
	_, err := io.WriteString(keyboard, "q")
	agenttest.Must(t, err)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after q: %v", err)
	}
	state, err := unix.IoctlGetTermios(int(cmd.Stdin.(*os.File).Fd()), unix.TCGETS)
	agenttest.Must(t, err)
	if want := uint32(unix.ICANON | unix.ECHO); state.Lflag&want != want {
		t.Errorf("the terminal does not show what is typed: %#x", state.Lflag)
	}
}

// TestWatchesOnATerminal: a watch overwrites its last text, fits the screen with any number of rows, and ends without
// an error when interrupted.
func TestWatchesOnATerminal(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Lost("c3"))
	for _, args := range [][]string{
		{"top"}, {"top", "c2", "--sort", "lag"}, {"status", "--watch"}, {"status", "c3", "-w"}, {"lookup", "10.2.1.10", "-w"}, {"describe", "node", "c2/n1", "-w"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			cmd, written := onTerminal(t, 80, 8, append(args, "--interval", "100ms", "--server", a.Server)...)
			waittest.Until(t, "a third text", func() bool { return strings.Count(written.String(), "\x1b[J") >= 3 }, written.String)
			agenttest.Must(t, cmd.Process.Signal(syscall.SIGINT))
			if err := cmd.Wait(); err != nil {
				t.Errorf("interrupted: %v", err)
			}
			for i, text := range strings.Split(written.String(), "\x1b[J")[:3] {
				lines := strings.Count(text, "\n")
				if up := strings.Contains(text, "A\r"); up != (i > 0) || lines > 7 || lines < 2 {
					t.Errorf("text %d has %d lines, and moves up is %v: %q", i, lines, up, text)
				}
			}
		})
	}
}

// TestWideListsOnATerminal: a list is cut to the terminal's width, with a hint on how to see more. The output of -o
// wide, and into a pipe, is never cut.
func TestWideListsOnATerminal(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Lost("c3"))
	const hint = "Cut to the width of the terminal: -o wide shows everything."
	for _, wide := range []bool{false, true} {
		args := []string{"get", "clusters", "--server", a.Server}
		if wide {
			args = append(args, "-o", "wide")
		}
		cmd, written := onTerminal(t, 40, 24, args...)
		agenttest.Must(t, cmd.Wait())
		waittest.Until(t, "the list", func() bool {
			return strings.Contains(written.String(), "c3") && strings.HasSuffix(written.String(), "\n")
		}, written.String)
		waittest.Until(t, "the hint, but of -o wide", func() bool { return strings.Contains(written.String(), hint) != wide }, written.String)
		longest := 0
		for line := range strings.Lines(written.String()) {
			if strings.Contains(line, hint) {
				continue
			}
			longest = max(longest, len([]rune(strings.TrimRight(line, "\r\n"))))
		}
		if wide != (longest > 40) {
			t.Errorf("wide is %v, and the longest line has %d columns:\n%s", wide, longest, written.String())
		}
	}
	if got := a.Ask("get", "clusters"); strings.Contains(got.Err, hint) || strings.Contains(got.Out, "…") {
		t.Errorf("a pipe: %s%s", got.Out, got.Err)
	}
}

// TestWatchOfAListOnATerminal: its rows fit the terminal like those of a list, and show what changed.
func TestWatchOfAListOnATerminal(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	cmd, written := onTerminal(t, 50, 24, "get", "clusters", "-w", "--server", a.Server)
	waittest.Until(t, "the state", func() bool { return strings.Contains(written.String(), "state") }, written.String)
	a.Mesh.SetClusters(clitest.Well("c2", 2), clitest.Lost("c3"))
	waittest.Until(t, "a new one", func() bool { return strings.Contains(written.String(), "new") }, written.String)
	agenttest.Must(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	waittest.Until(t, "the hint", func() bool { return strings.Contains(written.String(), "-o wide shows everything.") }, written.String)
	rows := 0
	for line := range strings.Lines(written.String()) {
		if strings.Contains(line, "c2") || strings.Contains(line, "c3") || strings.Contains(line, "CLUSTER") {
			rows++
			if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > 50 {
				t.Errorf("%d columns: %q", n, line)
			}
		}
	}
	if rows < 3 {
		t.Errorf("%d rows:\n%s", rows, written.String())
	}
}

// TestProgressOnATerminal: a command that waits shows the reason, and removes that text in the end.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	agenttest.Must(t, err)
	defer silent.Close()
	conns := make(chan net.Conn, 1)
	go func() {
		defer close(conns)
		if conn, err := silent.Accept(); err == nil {
			conns <- conn
		}
	}()
	cmd, written := onTerminal(t, 80, 24, "get", "nodes", "--server", "http://"+silent.Addr().String())
	waittest.Until(t, "the progress", func() bool { return strings.Contains(written.String(), "\rWaiting for the agent … 1s") }, written.String)
	agenttest.Must(t, (<-conns).Close()) // the command gets no other answer
	_ = cmd.Wait()
	waittest.Until(t, "the error, in the place of the progress", func() bool { // the terminal may deliver the written text later
		_, after, _ := strings.Cut(written.String(), "1s\x1b[K")
		return strings.Contains(after, "\r\x1b[KError: the agent cannot be reached")
	}, written.String)
}
