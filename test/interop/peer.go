package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"go/version"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/children"
)

// Newest is the release that everything is tested with.
const Newest = "1.20.2"

// Older compares releases, which are numbered like those of Go.
func Older(release, than string) bool { return version.Compare("go"+release, "go"+than) < 0 }

// PeersEnv names the folder of the peers, one program peer-RELEASE each.
const PeersEnv = "CILIUM_PEERS"

// Peer is a running peer. Its methods may be called at once from several goroutines.
type Peer struct {
	Release string
	name    string // for messages: role and release
	cmd     *exec.Cmd
	rpc     *rpc.Client
	ended   chan struct{} // closed once the process has ended
	end     error         // why, once ended is closed

	mu  sync.Mutex
	log []LogLine
}

// LogLine is a line that the peer has logged.
type LogLine struct{ Level, Message, Text string }

// Releases returns the releases that there are peers of, the newest last. It skips
// the test when there are none.
func Releases(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(os.Getenv(PeersEnv), "peer-*"))
	Must(t, err)
	if os.Getenv(PeersEnv) == "" || len(paths) == 0 {
		t.Skipf("no peers: %s names no folder with programs peer-RELEASE; `make interop` builds them", PeersEnv)
	}
	var releases []string
	for _, p := range paths {
		releases = append(releases, strings.TrimPrefix(filepath.Base(p), "peer-"))
	}
	return releases
}

// Program returns the path of the peer of a release; without it the test is skipped.
func Program(t testing.TB, release string) string {
	t.Helper()
	path := filepath.Join(os.Getenv(PeersEnv), "peer-"+release)
	if _, err := os.Stat(path); os.Getenv(PeersEnv) == "" || err != nil {
		t.Skipf("no peer of Cilium %s: set %s to a folder with the program peer-%[1]s; `make interop` builds it", release, PeersEnv)
	}
	return path
}

// Start starts a peer in a role. It ends with the test, or before with Stop or Kill.
func Start(t testing.TB, release, role string, args ...string) *Peer {
	t.Helper()
	p := &Peer{
		Release: release,
		name:    fmt.Sprintf("%s of %s", role, release),
		cmd:     exec.Command(Program(t, release), append([]string{role}, args...)...),
		ended:   make(chan struct{}),
	}
	p.cmd.SysProcAttr = children.Attributes()
	stdin, err := p.cmd.StdinPipe()
	Must(t, err)
	stdout, err := p.cmd.StdoutPipe()
	Must(t, err)
	stderr, err := p.cmd.StderrPipe()
	Must(t, err)
	Must(t, p.cmd.Start())
	p.rpc = jsonrpc.NewClient(pipes{stdout, stdin})
	go p.follow(stderr)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			for _, l := range p.lastWords() {
				t.Logf("%s: %s", p.name, l.Text)
			}
		}
	})
	return p
}

// follow keeps what the peer logs until it ends.
func (p *Peer) follow(stderr io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := LogLine{Text: lines.Text()}
		var fields struct{ Level, Msg string }
		if json.Unmarshal(lines.Bytes(), &fields) == nil {
			line.Level, line.Message = fields.Level, fields.Msg
		}
		p.mu.Lock()
		p.log = append(p.log, line)
		p.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, stderr) // a line beyond all bounds must not stop the peer
	p.end = p.cmd.Wait()
}

// Log returns what the peer has logged so far.
func (p *Peer) Log() []LogLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// Complaints returns the lines that are warnings, errors, or no log lines at all.
func (p *Peer) Complaints() []LogLine { return slices.DeleteFunc(p.Log(), LogLine.routine) }

func (l LogLine) routine() bool {
	return slices.Contains([]string{"INFO", "DEBUG"}, strings.ToUpper(l.Level))
}

// lastWords returns the complaints and the last lines: peers log thousands of lines of routine, in which the failure of
// a test would not be found.
func (p *Peer) lastWords() []LogLine {
	const last = 20
	log := p.Log()
	end := max(0, len(log)-last)
	return append(slices.DeleteFunc(slices.Clone(log[:end]), LogLine.routine), log[end:]...)
}

// Kill ends the peer as SIGKILL does and waits for it.
func (p *Peer) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.rpc.Close()
	<-p.ended
}

// Stop ends the peer as the end of its input does, and waits for it.
func (p *Peer) Stop(ctx context.Context) error {
	_ = p.rpc.Close() // closes its standard input
	select {
	case <-p.ended:
		if p.end != nil {
			return fmt.Errorf("%s: %w", p.name, p.end)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: does not end: %w", p.name, context.Cause(ctx))
	}
}

// Call calls the peer, such as "Codec.Encode".
func Call[R any](ctx context.Context, p *Peer, method string, args any) (R, error) {
	var reply R
	call := p.rpc.Go(method, args, &reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		if call.Error != nil {
			return reply, fmt.Errorf("%s: %s: %w", p.name, method, call.Error)
		}
		return reply, nil
	case <-ctx.Done():
		var none R // the reply may still be written to
		return none, fmt.Errorf("%s: %s: %w", p.name, method, context.Cause(ctx))
	}
}

// pipes are a process's standard output and input as one stream.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return p.WriteCloser.Close() }

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
