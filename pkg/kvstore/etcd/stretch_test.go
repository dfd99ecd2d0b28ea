package etcd

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
)

func TestIntervalsGrowWithTheCluster(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]time.Duration{ // spec kvstore.md §2.6
		0: 20 * time.Second, 1: 20 * time.Second, 128: 2*time.Minute + 25*time.Second, 8192: 4*time.Minute + 30*time.Second,
	} {
		o := Options{ClusterSize: func() int { return nodes }}
		if got := o.scaled(30 * time.Second); math.Abs((got - want).Seconds()) > 1 {
			t.Errorf("%d nodes: %s, want %s", nodes, got, want)
		}
	}
	if got := (Options{}).scaled(time.Second); got != (Options{ClusterSize: func() int { return 1 }}).scaled(time.Second) {
		t.Errorf("unknown size: %s", got)
	}
}

// sized returns the options for production in a cluster with this number of nodes.
func sized(nodes int) Options {
	o := DefaultOptions()
	o.ClusterSize = func() int { return nodes }
	return o
}

func TestStretch(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]float64{-1: 1, 0: 1, 1: 1, 6: 1, 54: 2, 100: 2.31, 128: 2.43, 5000: 4.26, 8000: 4.49} {
		if got := sized(nodes).Stretch(time.Minute).Minutes(); math.Abs(got-want) > 0.01 {
			t.Errorf("%d nodes: %.3f times as long, want %.2f", nodes, got, want)
		}
		if got := sized(nodes).probeInterval(); got != sized(nodes).Stretch(10*time.Second) {
			t.Errorf("%d nodes: probes each %s", nodes, got)
		}
	}
	if got := (Options{}).Stretch(0); got != 0 {
		t.Errorf("nothing becomes %s", got)
	}
}

// TestLostConnectionsComeBackOneAfterAnother: a session's first connection is made at once. In a large
// cluster later connections wait for a random time; in a small cluster they do not.
func TestLostConnectionsComeBackOneAfterAnother(t *testing.T) {
	t.Parallel()
	const n, server = 1000, "10.0.0.1:2379"
	again := func(t *testing.T, o Options, within time.Duration) (waits []time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		for range n {
			l := &dialLog{answers: map[string]bool{server: true}}
			o.Dial = l.dial
			d := newDialer(&clientfile.Config{}, o)
			for i := range 2 {
				began := time.Now()
				must(t, second(d.DialContext(ctx, server)))
				if took := time.Since(began); i == 1 {
					waits = append(waits, took)
				} else if took != 0 {
					t.Fatalf("the first connection had to wait for %s", took)
				}
			}
		}
		return waits
	}
	t.Run("few nodes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for _, waited := range again(t, sized(6), time.Hour) {
				if waited > 3*paceMin/2 { // the pause after a connection that did not last
					t.Fatalf("waited %s", waited)
				}
			}
		})
	})
	t.Run("5,000 nodes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			spread := sized(5000).Stretch(3*time.Second) - 3*time.Second
			var tenths [10]int
			for _, waited := range again(t, sized(5000), 24*time.Hour) {
				tenths[waited*10/spread]++ // an index out of range is too long
			}
			for i, come := range tenths {
				if come < n/20 || come > n/5 {
					t.Errorf("%d of %d come in the %dth tenth of %s", come, n, i+1, spread)
				}
			}
		})
	})
}

// TestATurnLeavesTimeToConnect: a caller with a deadline gets the connection, or its error.
func TestATurnLeavesTimeToConnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &dialLog{answers: map[string]bool{"here:1": true, "silent:1": false}}
		o := sized(1 << 20)
		o.Dial = l.dial
		d := newDialer(&clientfile.Config{}, o)
		for range 100 {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			if _, err := d.DialContext(ctx, "here:1"); err != nil || time.Since(began) > 2*time.Second {
				t.Fatalf("%v after %s", err, time.Since(began))
			}
			cancel()
		}
		d.before, d.pace = false, pace{}
		began := time.Now()
		_, err := d.DialContext(t.Context(), "silent:1")
		if took := time.Since(began); err == nil || took != o.Timings.Dial {
			t.Errorf("%v after %s, want an error after %s", err, took, o.Timings.Dial)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Nanosecond, cancel)
		kvtest.WantErr(t, second(d.DialContext(ctx, "here:1")), context.Canceled)
		kvtest.Contains(t, d.trouble(), "waiting to connect to here:1 again", "so that all nodes do not come at once", "silent")
	})
}

// TestADurableAsksLessOftenInALargeCluster counts the attempts of a Durable.
func TestADurableAsksLessOftenInALargeCluster(t *testing.T) {
	t.Parallel()
	attempts := func(t *testing.T, o Options) (n int) {
		refused := errors.New("there is no file")
		d := NewDurable(func() (*clientfile.Config, error) { n++; return nil, refused }, o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		kvtest.WantErr(t, d.Run(ctx), context.DeadlineExceeded)
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		few, many := attempts(t, sized(6)), attempts(t, sized(5000))
		if ratio := float64(few) / float64(many); math.Abs(ratio-4.26) > 0.6 {
			t.Errorf("%d attempts in an hour, with 5,000 nodes %d: %.1f times fewer, want 4.3", few, many, ratio)
		}
	})
}
