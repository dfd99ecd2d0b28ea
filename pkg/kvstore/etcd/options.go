package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// What an operator may choose as LeaseTTL.
const (
	minLeaseTTL = 25 * time.Second
	maxLeaseTTL = 24 * time.Hour
)

// The names of the options of --kvstore-opt, as [ParseOptions] takes them. The fields
// of [Options] that they set say what they mean.
const (
	OptionConfig             = "etcd.config"
	OptionAddress            = "etcd.address"
	OptionKeepaliveHeartbeat = "etcd.keepaliveHeartbeat"
	OptionKeepaliveTimeout   = "etcd.keepaliveTimeout"
	OptionQPS                = "etcd.qps"
	OptionBootstrapQPS       = "etcd.bootstrapQps"
	OptionMaxInflight        = "etcd.maxInflight"
	OptionPageLimit          = "etcd.limit"
)

// CheckLeaseTTL returns what is wrong with a LeaseTTL that an operator has chosen.
func CheckLeaseTTL(d time.Duration) error {
	if d < minLeaseTTL || d > maxLeaseTTL || d%time.Second != 0 {
		return fmt.Errorf("%s: whole seconds from %s to %s are needed", d, minLeaseTTL, maxLeaseTTL)
	}
	return nil
}

// Options say how a client behaves, whatever it connects to. Start from
// [DefaultOptions] or [ParseOptions]: a zero limit means no limit.
type Options struct {
	// ConfigPath is the client file of the local kvstore (etcd.config).
	ConfigPath string
	// Addresses replace the endpoints of the file, or serve without one (etcd.address).
	Addresses []string
	// KeepaliveHeartbeat is the interval of HTTP/2 pings while streams are open
	// (etcd.keepaliveHeartbeat); gRPC raises less than 10 s to that.
	KeepaliveHeartbeat time.Duration
	// KeepaliveTimeout without an answer closes the connection (etcd.keepaliveTimeout).
	KeepaliveTimeout time.Duration
	// QPS limits the operations per second from [Session.BootstrapComplete] on (etcd.qps). A list
	// counts as one, and so does an Update of whatever size. The watchdog's reads do not count.
	QPS int
	// BootstrapQPS is the limit before that (etcd.bootstrapQps); 0: QPS.
	BootstrapQPS int
	// MaxInflight limits the operations under way at once (etcd.maxInflight).
	MaxInflight int
	// PageLimit is the number of keys in a page of a list (etcd.limit).
	PageLimit int
	// MaxConsecutiveQuorumErrors is how many reads of the watchdog may fail in a
	// row; one more ends the session.
	MaxConsecutiveQuorumErrors int

	// LeaseTTL is how long keys outlive a writer that is gone, in whole seconds
	// ([CheckLeaseTTL]); LockTTL is the same for locks. 0 is the default.
	LeaseTTL time.Duration
	LockTTL  time.Duration
	// Leases are those of the keys, handed on from session to session; nil: they end with
	// the session.
	Leases *kvstore.Leases
	// NoLockQuorumCheck leaves out the linearizable read before a lock is taken, which is
	// done unless something was written, locked or unlocked in the 5 s before.
	NoLockQuorumCheck bool

	// NoEndpointChecks asks the endpoint about itself only until it has answered once,
	// which tells its version: Status().Server stays as it was then.
	NoEndpointChecks bool

	// ClusterSize returns the number of nodes of the own cluster at this moment, for
	// [Options.Stretch]. It is called often, by any goroutine. Nil, or less than one, means one.
	ClusterSize func() int
	// Schedule has the watchdogs of all sessions with these options ask at the same
	// moments; nil: each at its own.
	Schedule *waiting.Schedule
	// Timings are the watchdog's intervals and all deadlines. All zero means the defaults.
	Timings Timings
	// Metrics receive the operations; nil for none.
	Metrics *Metrics
	// Log receives one debug line per operation, and warnings about leases and locks; nil for none.
	Log *slog.Logger
	// Traces bounds the debug lines of all sessions that have it; nil: there is no bound.
	Traces *Traces
	// Dial opens connections, after host aliases are resolved; nil for a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialOptions are appended to our own ones. One that sets the same as ours, such
	// as a limit, replaces it; interceptors are added.
	DialOptions []grpc.DialOption

	receive int // largest message taken, receiveLimit when 0; tests lower it
}

// Timings are intervals and deadlines. Each is above zero.
type Timings struct {
	Connect        time.Duration // all of Connect
	Dial           time.Duration // one connection: TCP and TLS, all addresses of a name together
	Read           time.Duration // a read of one key
	Page           time.Duration // a page of a list
	Write          time.Duration // a write, and each step of a lock
	Lock           time.Duration // until a lock is taken
	StaleLock      time.Duration // a lock that is held for longer is reported
	WatchOpen      time.Duration // until the server has confirmed a watch
	Probe          time.Duration // one linearizable read of the watchdog
	ProbeInterval  time.Duration // between two of them, spread by a tenth, stretched as Stretch says
	StatusInterval time.Duration // between two questions about the endpoint, × ln(1+nodes)
	StatusRetry    time.Duration // the same while failing, × ln(1+nodes)
	HeartbeatLimit time.Duration // a heartbeat older than this is stale
	BackoffMax     time.Duration // between two attempts to restore the connection, stretched as Stretch says
	Close          time.Duration // of Close
}

// DefaultTimings are those of production.
func DefaultTimings() Timings {
	return Timings{
		Connect:        15 * time.Second,
		Dial:           5 * time.Second,
		Read:           10 * time.Second,
		Page:           time.Minute,
		Write:          10 * time.Second,
		Lock:           time.Minute,
		StaleLock:      30 * time.Second,
		WatchOpen:      15 * time.Second,
		Probe:          10 * time.Second,
		ProbeInterval:  10 * time.Second, // three of them before anything is stale
		StatusInterval: 30 * time.Second,
		StatusRetry:    5 * time.Second,
		HeartbeatLimit: 2 * time.Minute,
		BackoffMax:     3 * time.Second,
		Close:          2 * time.Second,
	}
}

// DefaultOptions are those of the table in spec kvstore.md §1.
func DefaultOptions() Options {
	return Options{
		KeepaliveHeartbeat:         15 * time.Second,
		KeepaliveTimeout:           25 * time.Second,
		QPS:                        20,
		BootstrapQPS:               10000,
		MaxInflight:                20,
		PageLimit:                  5000,
		MaxConsecutiveQuorumErrors: 2,
		LeaseTTL:                   kvstore.DefaultLeaseTTL,
		LockTTL:                    kvstore.DefaultLockTTL,
		Timings:                    DefaultTimings(),
	}
}

// ParseOptions reads the etcd.* options, as --kvstore-opt gives them, on top of
// the defaults. The error names every key and value that is wrong.
func ParseOptions(opts map[string]string) (Options, error) {
	o := DefaultOptions()
	set := o.setters()
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		f, ok := set[k]
		if !ok {
			errs = append(errs, fmt.Errorf("kvstore option %q: unknown", k))
			continue
		}
		if err := f(opts[k]); err != nil {
			errs = append(errs, fmt.Errorf("kvstore option %s=%q: %w", k, opts[k], err))
		}
	}
	return o, errors.Join(errs...)
}

func (o *Options) setters() map[string]func(string) error {
	return map[string]func(string) error{
		OptionConfig: func(s string) error {
			o.ConfigPath = s
			return nil
		},
		OptionAddress: func(s string) error {
			for a := range strings.SplitSeq(s, ",") {
				a = strings.TrimSpace(a)
				if err := clientfile.CheckEndpoint(a); err != nil {
					return err
				}
				o.Addresses = append(o.Addresses, a)
			}
			return nil
		},
		OptionKeepaliveHeartbeat: setDuration(&o.KeepaliveHeartbeat),
		OptionKeepaliveTimeout:   setDuration(&o.KeepaliveTimeout),
		OptionQPS:                setCount(&o.QPS),
		OptionBootstrapQPS:       setCount(&o.BootstrapQPS),
		OptionMaxInflight:        setCount(&o.MaxInflight),
		OptionPageLimit:          setCount(&o.PageLimit),
	}
}

func setDuration(to *time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return errors.New("a duration above zero is needed, such as 15s")
		}
		*to = d
		return nil
	}
}

func setCount(to *int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return errors.New("a whole number is needed, not negative")
		}
		*to = n
		return nil
	}
}

// HasLocal reports whether the options name a local kvstore.
func (o Options) HasLocal() bool { return o.ConfigPath != "" || len(o.Addresses) > 0 }

// Config makes the configuration of the local kvstore from ConfigPath and
// Addresses. It returns nil without an error when neither is set.
func (o Options) Config() (*clientfile.Config, error) {
	if o.ConfigPath == "" {
		if len(o.Addresses) == 0 {
			return nil, nil
		}
		return clientfile.New(o.Addresses...)
	}
	c, err := clientfile.Load(o.ConfigPath)
	if err != nil || len(o.Addresses) == 0 {
		return c, err
	}
	return c.WithEndpoints(o.Addresses...)
}
