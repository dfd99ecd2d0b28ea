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

// The limits of LeaseTTL.
const (
	minLeaseTTL = 25 * time.Second
	maxLeaseTTL = 24 * time.Hour
)

// The names of the options of --kvstore-opt, for [ParseOptions]. The fields of [Options]
// that they set describe their meaning.
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

// CheckLeaseTTL returns an error for a LeaseTTL that is not allowed.
func CheckLeaseTTL(d time.Duration) error {
	if d < minLeaseTTL || d > maxLeaseTTL || d%time.Second != 0 {
		return fmt.Errorf("%s: whole seconds from %s to %s are needed", d, minLeaseTTL, maxLeaseTTL)
	}
	return nil
}

// Options are the settings of a client that do not depend on its endpoint. Start
// from [DefaultOptions] or [ParseOptions]: a zero limit means no limit.
type Options struct {
	// ConfigPath is the client file of the local kvstore (etcd.config).
	ConfigPath string
	// Addresses replace the endpoints of the client file, or are used without a file (etcd.address).
	Addresses []string
	// KeepaliveHeartbeat is the interval of HTTP/2 pings while streams are open
	// (etcd.keepaliveHeartbeat); gRPC raises values below 10 s to 10 s.
	KeepaliveHeartbeat time.Duration
	// KeepaliveTimeout is the time after which a ping without an answer closes the connection
	// (etcd.keepaliveTimeout).
	KeepaliveTimeout time.Duration
	// QPS limits the operations per second from [Session.BootstrapComplete] on (etcd.qps). A list
	// counts as one operation, and also an Update of any size. The watchdog's reads do not count.
	QPS int
	// BootstrapQPS is the limit before that (etcd.bootstrapQps); 0: QPS.
	BootstrapQPS int
	// MaxInflight limits the number of concurrent operations (etcd.maxInflight).
	MaxInflight int
	// PageLimit is the number of keys in a page of a list (etcd.limit).
	PageLimit int
	// MaxConsecutiveQuorumErrors is the number of consecutive reads of the watchdog
	// that may fail; one more failure ends the session.
	MaxConsecutiveQuorumErrors int

	// LeaseTTL is how long keys outlive a writer that is gone, in whole seconds
	// ([CheckLeaseTTL]); LockTTL is the same for locks. 0 is the default.
	LeaseTTL time.Duration
	LockTTL  time.Duration
	// Leases are the leases of the keys, which pass from session to session; nil: the leases
	// end with the session.
	Leases *kvstore.Leases
	// NoLockQuorumCheck omits the linearizable read before a lock is taken. Without it the read
	// is made unless a write, lock or unlock was answered in the last 5 s.
	NoLockQuorumCheck bool

	// NoEndpointChecks requests the status of the endpoint only until the first answer,
	// which has its version. Status().Server then no longer changes.
	NoEndpointChecks bool

	// ClusterSize returns the number of nodes of the own cluster at this moment, for
	// [Options.Stretch]. It is called often, by any goroutine. Nil, or less than one, means one.
	ClusterSize func() int
	// Schedule makes the watchdogs of all sessions with these options send their requests
	// at the same moments; nil: each session has its own moments.
	Schedule *waiting.Schedule
	// Timings are the watchdog's intervals and all deadlines. If all are zero, the defaults apply.
	Timings Timings
	// Metrics count the operations; nil for none.
	Metrics *Metrics
	// Log receives one debug line per operation, and warnings about leases and locks; nil for none.
	Log *slog.Logger
	// Traces bounds the debug lines of all sessions that share it; nil: there is no bound.
	Traces *Traces
	// Dial opens connections, after host aliases are resolved; nil for a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialOptions are appended to the options of this package. An option that sets the same
	// property, such as a limit, replaces ours; interceptors are added.
	DialOptions []grpc.DialOption

	receive int // the largest accepted message in bytes, receiveLimit when 0; tests lower it
}

// Timings are intervals and deadlines. Each must be above zero.
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
	ProbeInterval  time.Duration // between two probes, ±10% at random, stretched by Stretch
	StatusInterval time.Duration // between two requests for the endpoint's status, × ln(1+nodes)
	StatusRetry    time.Duration // the same while failing, × ln(1+nodes)
	HeartbeatLimit time.Duration // a heartbeat older than this is stale
	BackoffMax     time.Duration // longest pause between two attempts to restore the connection, stretched by Stretch
	Close          time.Duration // of Close
}

// DefaultTimings are the timings for production.
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
		ProbeInterval:  10 * time.Second, // three intervals before anything is stale
		StatusInterval: 30 * time.Second,
		StatusRetry:    5 * time.Second,
		HeartbeatLimit: 2 * time.Minute,
		BackoffMax:     3 * time.Second,
		Close:          2 * time.Second,
	}
}

// DefaultOptions are the options of the table in spec kvstore.md §1.
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

// ParseOptions reads the etcd.* options of --kvstore-opt, and takes the defaults for
// the others. The error names every wrong key and value.
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
			errs = append(errs, fmt.Errorf("kvstore option %s=%q: %w", k, shown(k, opts[k]), err))
		}
	}
	return o, errors.Join(errs...)
}

// shown returns what a message may have of a value. A wrong address with a user may have a password at any place.
func shown(option, value string) string {
	if option == OptionAddress && strings.Contains(value, "@") {
		return clientfile.LeftOut
	}
	return value
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
