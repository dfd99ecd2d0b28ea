package services

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// Conditions is the state of a backend. The zero value means ready and serving, which is assumed when only the address
// is known.
type Conditions uint8

// Problems of a backend.
const (
	NotReady      Conditions = 1 << iota // it must not get new connections
	NotServing                           // it does not answer
	IsTerminating                        // it is about to end
)

// conditionsFromWire converts conditions. Unset ones have their meaning in Kubernetes: ready is true, serving equals
// ready, terminating is false.
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

// Ready reports whether the backend can get new connections.
func (c Conditions) Ready() bool { return c&NotReady == 0 }

// Serving reports whether the backend answers, even while it terminates.
func (c Conditions) Serving() bool { return c&NotServing == 0 }

// Terminating reports whether the backend is about to end.
func (c Conditions) Terminating() bool { return c&IsTerminating != 0 }

// Usable reports whether the backend is ready or serving. Only such endpoints are exported as backends (wire.md §1.3).
// The selection calls these backends healthy: active, or terminating and still answering (§4.4).
func (c Conditions) Usable() bool { return c.Ready() || c.Serving() }

// Active reports whether the backend is usable and does not terminate.
func (c Conditions) Active() bool { return c.Usable() && !c.Terminating() }

// and returns the problems that both have.
func (c Conditions) and(o Conditions) Conditions { return c & o }
