package docs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// session is a shell in a directory of its own, which has the programs in bin and the documents in docs.
type session struct {
	t       *testing.T
	dir     string
	in      io.Writer
	printed *waittest.Output
	replace *strings.Replacer // words of a page, and their replacements here
	restore *strings.Replacer // the other way round
	number  int
}

// newSession starts a shell. replace has pairs of words: the page's word, and the word to use here.
func newSession(t *testing.T, bin string, replace ...string) *session {
	t.Helper()
	dir, err := os.MkdirTemp("", "docs") // short, as the path of a socket has a limit
	waittest.Must(t, err)
	s := &session{t: t, dir: dir, printed: new(waittest.Output)}
	root, err := filepath.Abs("../..")
	waittest.Must(t, err)
	waittest.Must(t, os.Symlink(bin, filepath.Join(dir, "bin")))
	waittest.Must(t, os.Symlink(filepath.Join(root, "docs"), filepath.Join(dir, "docs")))
	waittest.Must(t, os.Mkdir(filepath.Join(dir, "t"), 0o700))
	replace = append(replace, "/tmp/", dir+"/t/")
	s.replace = strings.NewReplacer(replace...)
	var back []string
	for i := 0; i < len(replace); i += 2 {
		back = append(back, replace[i+1], replace[i])
	}
	s.restore = strings.NewReplacer(back...)

	shell := exec.Command("bash", "--noprofile", "--norc")
	shell.Dir, shell.Stdout, shell.Stderr = dir, s.printed, s.printed
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+filepath.Join(dir, "t"), "LC_ALL=C.UTF-8",
		"MESH_AGENT_SOCKET="+filepath.Join(dir, "agent.sock"), "MESH_SIM_SOCKET=")
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.in, err = shell.StdinPipe()
	waittest.Must(t, err)
	waittest.Must(t, shell.Start())
	t.Cleanup(func() {
		// The processes that the page has started are in the shell's process group, and get the signal of Ctrl-C first.
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGTERM)
		done := make(chan error, 1)
		go func() { done <- shell.Wait() }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
			<-done
		}
		_ = os.RemoveAll(dir)
	})
	return s
}

// ended is what the shell prints after a command, with its exit code.
const ended = "\x01ended"

// background matches commands that continue while the next one runs.
var background = regexp.MustCompile(`&\s*$`)

// run gives the shell a command, waits until it has ended, and returns where its output begins.
func (s *session) run(command string) (start int) {
	s.t.Helper()
	s.number++
	start = len(s.printed.String())
	end := fmt.Sprintf("%s %d ", ended, s.number)
	// The next command gets the last exit code as if there was nothing in between.
	_, err := fmt.Fprintf(s.in, "%s\ncode=$?; printf '\\001ended %%d %%d\\n' %d $code; (exit $code)\n", s.replace.Replace(command), s.number)
	waittest.Must(s.t, err)
	waittest.Until(s.t, command, func() bool { return strings.Contains(s.printed.String()[start:], end) }, s.printed.String)
	return start
}

var marks = regexp.MustCompile(ended + ` (\d+) (\d+)\n`)

// since returns the output from a position, in the words of the page.
func (s *session) since(start int) string {
	return s.restore.Replace(marks.ReplaceAllString(s.printed.String()[start:], ""))
}

// code is the exit code of the last command.
func (s *session) code() string {
	all := marks.FindAllStringSubmatch(s.printed.String(), -1)
	return all[len(all)-1][2]
}

// reads are commands that change nothing, so that they can be repeated.
var reads = regexp.MustCompile(`^(for i in 1 2; do )?(bin/)?(mesh-agent (status|get|lookup|describe|explain|xds|troubleshoot|kvstore|config)|dig|curl|cat|kubectl get)\b`)

// step runs a step until its output is that of the page, or the time is over. It returns the last output.
func (s *session) step(at step) (got string, ok bool) {
	s.t.Helper()
	command := at.command
	if background.MatchString(command) {
		to := "2>> t/background.log &" // its log is separate from its output
		switch {
		case len(at.want) == 0:
			to = "> /dev/null " + to
		case at.quiet:
		default:
			to = "&"
		}
		command = background.ReplaceAllString(command, to)
	}
	start := s.run(command)
	if len(at.want) == 0 {
		return s.since(start), s.code() == "0"
	}
	began, last := time.Now(), time.Now()
	waittest.Try(s.t, command, func() error {
		got = s.since(start)
		ok = same(at.command, at.want, got)
		if ok || time.Since(began) > *patience {
			return nil
		}
		if reads.MatchString(command) && time.Since(last) > time.Second/2 {
			start, last = s.run(command), time.Now()
		}
		return errors.New("it printed\n" + got)
	})
	return got, ok
}

// background is the log of the processes in the background.
func (s *session) background() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "t", "background.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
