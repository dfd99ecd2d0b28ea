package disconnect

import (
	"fmt"
	"time"
)

// State is how the service backends of a cluster are used.
type State uint8

// The states, each worse than the one before.
const (
	Keep     State = iota // used like those of any cluster
	Demote                // used only where no other cluster has a usable one
	Withdraw              // not used where another cluster has a usable one
)

// String returns keep, demote or withdraw.
func (s State) String() string {
	names := [...]string{"keep", "demote", "withdraw"}
	if int(s) >= len(names) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return names[s]
}

// Evidence is the known state of a cluster at one moment.
type Evidence struct {
	// Synced reports whether its services were ever listed completely.
	Synced bool
	// Fresh reports whether they are followed and known to be up to date.
	Fresh bool
	// AsOf is the time until which they are known to equal the remote's, by a linearizable read.
	AsOf time.Time
	// Connected is since when there is a session; zero while there is none.
	Connected time.Time
	// Heartbeat is when a heartbeat of its writer was last seen; zero when never.
	Heartbeat time.Time
	// HeartbeatRevision changes with every write of the heartbeat.
	HeartbeatRevision int64
	// Error is the reason why it does not answer, if that is known.
	Error string
}

// Transition is one cluster's move from one state to another.
type Transition struct {
	Cluster  string
	From, To State
	Why      string // for users, with the evidence
}

// Forecast is the present state of a cluster, and the next one.
type Forecast struct {
	State State
	Since time.Time // of the state
	// Why is the evidence against the cluster, or for its return; empty for a cluster that is kept and has no problem.
	Why string
	// Doubtful reports whether the evidence is against the cluster.
	Doubtful bool
	// Next is the state that follows at NextAt, if the evidence does not change. A zero NextAt means no transition.
	Next   State
	NextAt time.Time
	// Held is since when the policy is held; zero while it is not. While it is held, Failing of Judged clusters are
	// doubtful.
	Held            time.Time
	Failing, Judged int
	Evidence        Evidence
}
