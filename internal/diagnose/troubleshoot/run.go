// Package troubleshoot checks one configuration of a kvstore step by step, from the client file to what the cluster
// says of itself, and gives the cause and the remedy for each step that fails (spec kvstore.md §2.9). It needs no
// running agent, reads only, and never shows a secret.
//
// The steps look with the agent's own eyes: the client file's reader, the host aliases, the session of package
// kvstore. Only the TLS handshake is its own: it continues after a certificate that the agent refuses, to find the
// next problem too.
//
// # Concurrency
//
// [Run] may be called by any number of goroutines. It checks the endpoints of a
// configuration side by side and returns within [Timings.Total]. [All] runs
// several. Both return after every goroutine that they started.
//
// # Failure
//
// All failures are in the [Report]: there are no errors. A step that cannot be tried because of another one is
// skipped and names it.
package troubleshoot

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Target is a configuration to check.
type Target struct {
	// Cluster is the name of the cluster, that of the own one for its kvstore.
	Cluster string
	// Local: it is the kvstore of the own cluster.
	Local bool
	// Path is the client file. It may be empty with Addresses.
	Path string
	// Addresses replace the endpoints of the file, or serve without one.
	Addresses []string
}

// Options say how to check. The zero value is good.
type Options struct {
	// Own is the own cluster, with which others must agree. Without
	// MaxConnectedClusters it is an observer of a mesh of 255.
	Own wire.ClusterInfo
	// Resolve finds the addresses of a host name, instead of the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial opens connections to addresses, instead of a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Timings are the deadlines; all zero means the defaults.
	Timings Timings
	// Now is when dates are judged; zero means at the call.
	Now time.Time
}

// Timings are deadlines. Each is above zero.
type Timings struct {
	Resolve time.Duration // of a host name
	Dial    time.Duration // of all TCP connections of an endpoint together
	TLS     time.Duration // of a handshake and of the first answer after it
	Etcd    time.Duration // until etcd has answered
	Read    time.Duration // of all reads together
	Total   time.Duration // of everything
}

// DefaultTimings end before 15 seconds, closing included, even if every step hangs.
func DefaultTimings() Timings {
	return Timings{
		Resolve: 4 * time.Second, Dial: 5 * time.Second, TLS: 5 * time.Second,
		Etcd: 5 * time.Second, Read: 5 * time.Second, Total: 13500 * time.Millisecond,
	}
}

const closing = 500 * time.Millisecond // for a session to close

const atOnce = 32 // configurations that are checked side by side

// All checks several configurations side by side. The reports are in the order of the targets.
func All(ctx context.Context, targets []Target, o Options) []Report {
	reports := make([]Report, len(targets))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, t := range targets {
		g.Go(func() error {
			reports[i] = Run(ctx, t, o)
			return nil
		})
	}
	_ = g.Wait() // no function returns one
	return reports
}

// Run checks one configuration.
func Run(ctx context.Context, t Target, o Options) Report {
	c := newCheck(t, o)
	ctx, cancel := context.WithTimeout(ctx, c.o.Timings.Total)
	defer cancel()
	steps := c.files()
	endpoints := c.endpoints(ctx)
	for _, e := range endpoints {
		steps = append(steps, e.steps...)
	}
	r := Report{Name: t.Cluster, Local: t.Local, ConfigFile: t.Path, State: Skipped}
	r.Steps = append(steps, c.contents(ctx, endpoints, &r)...)
	var closed sync.WaitGroup
	for _, e := range endpoints {
		closed.Go(e.close)
	}
	closed.Wait()
	for _, s := range r.Steps {
		if s.State.rank() > r.State.rank() {
			r.State = s.State
		}
	}
	return r
}

type check struct {
	target Target
	o      Options

	// cfg is the configuration as far as it can be read, nil when it cannot.
	cfg *clientfile.Config
	// refused is the step for which the agent refuses the whole configuration,
	// empty when it does not: then cfg is good for a session.
	refused string
}

func newCheck(t Target, o Options) *check {
	if o.Timings == (Timings{}) {
		o.Timings = DefaultTimings()
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	o.Own.MaxConnectedClusters = cmp.Or(o.Own.MaxConnectedClusters, wire.MaxConnectedClusters255)
	return &check{target: t, o: o}
}

// endpoints checks each endpoint. A configuration that cannot be read has one
// without a name, whose steps are skipped.
func (c *check) endpoints(ctx context.Context) []*endpoint {
	urls := []string{""}
	if c.refused != StepFile {
		urls = c.cfg.Endpoints
	}
	endpoints := make([]*endpoint, len(urls))
	var all sync.WaitGroup
	for i, url := range urls {
		endpoints[i] = &endpoint{check: c, attempt: i, url: url}
		all.Go(func() { endpoints[i].run(ctx) })
	}
	all.Wait()
	return endpoints
}
