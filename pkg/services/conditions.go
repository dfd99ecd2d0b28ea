package services

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// Conditions says what state a backend is in. The zero value is that of one of
// which nothing more is known than that it is listed: ready and serving.
type Conditions uint8

// What can be wrong with a backend.
const (
	NotReady      Conditions = 1 << iota // it does not want new connections
	NotServing                           // it does not answer
	IsTerminating                        // it is about to go
)

// conditionsFromWire gives unset conditions their meaning in Kubernetes: ready,
// serving as far as ready, not terminating.
func conditionsFromWire(w wire.EndpointConditions) (c Conditions) {
	ready := w.Ready == nil || *w.Ready
	if !ready {
		c |= NotReady
	}
	if serving := w.Serving; serving == nil && !ready || serving != nil && !*serving {
		c |= NotServing
	}
	if w.Terminating != nil && *w.Terminating {
		c |= IsTerminating
	}
	return c
}

// Ready reports whether the backend wants new connections.
func (c Conditions) Ready() bool { return c&NotReady == 0 }

// Serving reports whether the backend answers, also while it terminates.
func (c Conditions) Serving() bool { return c&NotServing == 0 }

// Terminating reports whether the backend is about to go.
func (c Conditions) Terminating() bool { return c&IsTerminating != 0 }

// Usable reports whether the backend is ready or serving. Only such endpoints are
// exported as backends (wire.md §1.3). It is what the selection calls healthy:
// active, or terminating and still answering (§4.4).
func (c Conditions) Usable() bool { return c.Ready() || c.Serving() }

// Active reports whether the backend is usable and stays.
func (c Conditions) Active() bool { return c.Usable() && !c.Terminating() }

// and holds against a backend what both hold against it.
func (c Conditions) and(o Conditions) Conditions { return c & o }
