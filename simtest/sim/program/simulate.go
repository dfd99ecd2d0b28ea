package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/simtest/sim"
)

// mesh is the mesh that the commands change.
type mesh struct{ *sim.Mesh }

// Simulate runs the mesh of the settings, reports on out each part that is ready, and returns when ctx ends, which is
// no error, or when the command does. All files that it created are removed by then. When the command failed, the error
// is an *exec.ExitError or wraps one.
func Simulate(ctx context.Context, s Settings, out io.Writer) error {
	clusters, err := s.Descriptions()
	if err != nil {
		return err
	}
	if s.Quiet {
		out = io.Discard
	}
	m, err := sim.OpenMesh(ctx, clusters, s.Mesh)
	if err != nil {
		return err
	}
	err = mesh{m}.run(ctx, s, out)
	if ctx.Err() != nil { // an interrupted operation is not a failure
		err = nil
	}
	return errors.Join(err, m.Close())
}

// errCommandEnded ends the clusters when the command has ended without an error.
var errCommandEnded = errors.New("the command has ended")

func (m mesh) run(ctx context.Context, s Settings, out io.Writer) error {
	socket, err := m.controlSocket(s.ControlSocket)
	if err != nil {
		return err
	}
	control, err := listenControl(socket)
	if err != nil {
		return err
	}
	defer func() { _ = control.Close() }() // if it was not served; otherwise it is closed already
	if err := m.loadAndReport(ctx, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "control socket: %s (%s ctl --help)\n", socket, os.Args[0])
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.Run(ctx) })
	g.Go(func() error { return m.serveControl(ctx, control) })
	if len(s.Command) > 0 {
		words := m.expand(append([]string{s.Log}, s.Command...), socket)
		command, path := words[1:], words[0]
		log, err := openLog(path)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		defer func() { _ = log.Close() }() // also a nil log
		if path != "" {
			fmt.Fprintf(out, "log of %s: %s\n", filepath.Base(command[0]), path)
		}
		g.Go(func() error {
			waitListening(ctx, agentAddress(command))
			if ctx.Err() == nil {
				fmt.Fprint(out, m.screen(command))
			}
			return nil
		})
		g.Go(func() error {
			if err := runCommand(ctx, command, []string{SocketVariable + "=" + socket}, log); err != nil {
				return err
			}
			return errCommandEnded
		})
	}
	if err := g.Wait(); !errors.Is(err, errCommandEnded) {
		return err
	}
	return nil
}

func (m mesh) loadAndReport(ctx context.Context, out io.Writer) error {
	start := time.Now()
	keys := 0
	err := m.Load(ctx, func(r *sim.Running, l sim.Loaded) {
		keys += l.Keys
		c := r.Cluster()
		fmt.Fprintf(out, "%s: id %d, %s, %s keys in %s%s\n",
			c.Name, c.ID, r.Endpoint(), thousands(l.Keys), short(l.Took), rate(l))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "ready: %d clusters, %s keys in %s\nmesh directory: %s\n",
		len(m.Clusters()), thousands(keys), short(time.Since(start)), m.Dir())
	if r, ok := m.Local(); ok {
		fmt.Fprintf(out, "local cluster: %s, id %d, client file %s\n", r.Cluster().Name, r.Cluster().ID, m.ClientFile(r))
	}
	return nil
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// rate is the speed of loading, empty for few keys.
func rate(l sim.Loaded) string {
	if l.Keys < 10_000 {
		return ""
	}
	return " (" + thousands(int(float64(l.Keys)/l.Took.Seconds())) + " keys/s)"
}

// thousands writes a number with a comma between thousands.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
