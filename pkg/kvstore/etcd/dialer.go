package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// dialer opens the connections of one session. It resolves the host aliases of the
// configuration and keeps the last error, which gRPC hides behind a deadline.
type dialer struct {
	aliases map[string][]netip.Addr
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	timeout time.Duration // for a connection, with its TLS handshake

	// spread is the longest random wait before a lost connection is restored; 0 for no wait.
	spread func() time.Duration
	// longest is the longest pause between two connections when the first of them failed or ended soon.
	longest time.Duration

	received atomic.Int64 // bytes, on all connections
	// accepted are the certificates with which the server of the last TLS connection was accepted; nil before the first.
	accepted atomic.Pointer[kvstore.Certificates]

	mu      sync.Mutex
	good    map[string]netip.Addr // the address that last worked, by host name
	lastErr error                 // why the last attempt failed; nil after a success
	trying  string                // describes the current attempt; empty for none
	notify  func(error)           // called for each failure; may be nil
	before  bool                  // there was a connection before
	pace    pace
	until   time.Time // the deadline for opening the current connection
}

func newDialer(c *clientfile.Config, o Options) *dialer {
	d := &dialer{
		aliases: make(map[string][]netip.Addr),
		dial:    o.Dial,
		timeout: o.Timings.Dial,
		spread:  o.reconnectSpread,
		longest: o.Timings.BackoffMax,
		good:    make(map[string]netip.Addr),
	}
	for _, a := range c.HostAliases {
		d.aliases[a.Hostname] = a.IPs
	}
	if d.dial == nil {
		d.dial = new(net.Dialer).DialContext
	}
	return d
}

// DialContext connects to an address in gRPC's form: host:port or unix:path. The
// session's first connection is made at once; later ones wait (turn).
func (d *dialer) DialContext(ctx context.Context, addr string) (net.Conn, error) {
	if err := d.turn(ctx, addr); err != nil {
		return nil, err
	}
	d.begun(addr)
	ctx, cancel := d.bounded(ctx)
	defer cancel()
	conn, err := d.connect(ctx, addr)
	if err != nil {
		d.failedUnlessCancelled(ctx, err)
		return nil, err
	}
	d.begin("")
	return conn, nil
}

// turn waits before a connection is made again. The wait is random, because a server that was
// restarted has lost the connections of all nodes at the same moment. It becomes longer for a
// server that ends connections at once.
func (d *dialer) turn(ctx context.Context, addr string) error {
	d.mu.Lock()
	again, paced := d.before, d.pace.due(time.Now(), d.longest)
	d.before = true
	d.mu.Unlock()
	spread := d.spread()
	if deadline, ok := ctx.Deadline(); ok { // keep time for connecting, too
		left := time.Until(deadline) - d.timeout
		spread, paced = min(spread, left), min(paced, max(left, paceMin))
	}
	wait := paced
	if again && spread > 0 {
		wait = max(paced, rand.N(spread))
	}
	switch {
	case wait <= 0:
		return nil
	case wait == paced:
		d.begin(fmt.Sprintf("waiting to connect to %s again, for %s, since the connection before did not last", addr, wait.Round(time.Millisecond)))
	default:
		d.begin(fmt.Sprintf("waiting to connect to %s again, at a moment within %s, so that all nodes do not come at once", addr, spread.Round(time.Second/10)))
	}
	return waiting.Sleep(ctx, wait)
}

// begun records the start of a connection attempt, and sets the deadline for opening the connection.
func (d *dialer) begun(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trying = "connecting to " + addr
	d.pace.last = time.Now()
	d.until = d.pace.last.Add(d.timeout)
}

// bounded returns a context with the deadline for opening the current connection.
func (d *dialer) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return context.WithDeadline(ctx, d.until)
}

func (d *dialer) connect(ctx context.Context, addr string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return d.dial(ctx, "unix", strings.TrimPrefix(path, "//"))
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", addr, err)
	}
	if ips, ok := d.aliases[host]; ok {
		return d.connectAny(ctx, host, port, ips)
	}
	return d.dial(ctx, "tcp", addr)
}

// connectAny tries the addresses of an alias: first the one that last worked, then the
// others in random order, each with an equal share of the remaining time.
func (d *dialer) connectAny(ctx context.Context, host, port string, ips []netip.Addr) (net.Conn, error) {
	deadline, _ := ctx.Deadline() // bounded has set one
	var errs []error
	order := d.order(host, ips)
	for i, ip := range order {
		share := time.Until(deadline) / time.Duration(len(order)-i)
		actx, cancel := context.WithTimeout(ctx, share)
		conn, err := d.dial(actx, "tcp", net.JoinHostPort(ip.String(), port))
		cancel()
		if err == nil {
			d.mu.Lock()
			d.good[host] = ip
			d.mu.Unlock()
			return conn, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("host alias %s: %w", host, errors.Join(errs...))
}

func (d *dialer) order(host string, ips []netip.Addr) []netip.Addr {
	order := slices.Clone(ips)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(order, d.good[host]); i > 0 {
		order[0], order[i] = order[i], order[0]
	}
	return order
}

// begin records a description of the current attempt; an empty text means no attempt.
func (d *dialer) begin(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trying = what
}

func (d *dialer) failed(err error) {
	d.mu.Lock()
	d.trying, d.lastErr = "", err
	notify := d.notify
	d.mu.Unlock()
	if notify != nil {
		notify(err)
	}
}

// failedUnlessCancelled calls failed, except after a cancellation of ours: then users still see the attempt in trying.
func (d *dialer) failedUnlessCancelled(ctx context.Context, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		d.failed(err)
	}
}

func (d *dialer) worked() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trying, d.lastErr = "", nil
}

func (d *dialer) onFailure(f func(error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notify = f
}

// trouble returns why there is no connection, or the current attempt, as an error; nil for neither.
func (d *dialer) trouble() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.trying != "" && d.lastErr != nil:
		return fmt.Errorf("still %s; before: %w", d.trying, d.lastErr)
	case d.trying != "":
		return errors.New("still " + d.trying)
	default:
		return d.lastErr
	}
}
