package local

import (
	"sync"
	"time"
)

// Refuse notes what the source says that cannot be used, with the reasons; what it
// noted before is over. The slice must not be changed any more.
func (c *Cluster) Refuse(lines []string) {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	c.reports.refused = lines
}

// State says how well the description is known.
type State struct {
	// Listed: all that was there at the start is known.
	Listed bool
	// AsOf: the description is what the source has as of this time; zero when it
	// never was.
	AsOf time.Time
	// Err is why it may have moved on since; nil while the source is followed.
	Err error
	// Refused is what the source says that cannot be used, and why: a line each.
	Refused []string
}

// reports is what the source says of itself.
type reports struct {
	mu   sync.Mutex
	made bool      // guarded by mu; the source has said something
	err  error     // guarded by mu; what it said last
	well time.Time // guarded by mu; until when it was followed; zero while it is, or never was

	refused []string // guarded by mu
}

// Report notes whether the source can be followed at present, nil when it can. The
// source calls it whenever that changes.
func (c *Cluster) Report(err error) {
	r := &c.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.err == nil && r.made {
		r.well = time.Now()
	}
	r.made, r.err = true, err
}

// State says how well the description is known at this moment.
func (c *Cluster) State() State {
	listed, _ := c.Services.table.Initialized(c.Services.db.ReadTxn())
	r := &c.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{Listed: listed, Err: r.err, AsOf: r.well, Refused: r.refused}
	if listed && r.made && r.err == nil {
		s.AsOf = time.Now()
	}
	return s
}
