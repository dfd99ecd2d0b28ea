package local

import (
	"context"
	"sync"
	"time"
)

// Refuse records the unusable contents of the source, with the reasons, in place of those recorded before. The caller
// must not change the slice afterwards.
func (c *Cluster) Refuse(lines []string) {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	c.reports.refused = lines
}

// Doubt records that the first lists of the source may be incomplete: entries of objects that are missing from the
// tables may be withdrawn only after [Cluster.Whole]. A source that never calls Doubt is complete when its tables are
// listed. It is called before the source runs.
func (c *Cluster) Doubt() {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	c.reports.whole = make(chan struct{})
}

// Whole ends the doubt, once all earlier objects are in the tables. It may be called again.
func (c *Cluster) Whole() {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	if c.reports.whole != nil && !c.reports.isWhole {
		c.reports.isWhole = true
		close(c.reports.whole)
	}
}

// IsWhole reports whether the tables, once they are listed, lack no object of the cluster; else it returns a channel
// that is closed when they lack none.
func (c *Cluster) IsWhole() (bool, <-chan struct{}) {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	return c.reports.whole == nil || c.reports.isWhole, c.reports.whole
}

// WaitWhole waits until [Cluster.IsWhole], or until ctx ends.
func (c *Cluster) WaitWhole(ctx context.Context) error {
	whole, becomesWhole := c.IsWhole()
	return wait(ctx, whole, becomesWhole)
}

// Refused returns the unusable contents that the source recorded last. The caller must not change the slice.
func (c *Cluster) Refused() []string {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	return c.reports.refused
}

// Confirmed sets a function with which the source itself reports the time until which services and their slices are known
// to equal the tables, zero for never. Without Confirmed they are assumed to be equal as long as the source reports no
// error. While nothing changes, the source checks at this interval. Confirmed is called before the source runs; asOf is
// not called while the source reports.
func (c *Cluster) Confirmed(every time.Duration, asOf func() time.Time) {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	c.reports.every, c.reports.asOf = every, asOf
}

// State is how complete and up to date the description is.
type State struct {
	// Listed: all services and slices that the source had at the start are in the tables, and shown ([Cluster.Hidden]).
	Listed bool
	// AsOf: they equal the source as of this time; zero when they never did.
	AsOf time.Time
	// Every is how often AsOf advances while nothing changes; 0: it is always the present time.
	Every time.Duration
	// Err is why AsOf may no longer advance; nil while the source is followed.
	Err error
	// Refused has the unusable contents of the source, with the reasons: a line each.
	Refused []string
}

// Hidden records that another component shows the contents of the tables, but does not do so yet: until
// [Cluster.Shown], its readers do not see them, and [State.Listed] is false.
func (c *Cluster) Hidden() { c.hide(true) }

// Shown records that the contents of the listed tables are shown.
func (c *Cluster) Shown() { c.hide(false) }

func (c *Cluster) hide(yes bool) {
	c.reports.mu.Lock()
	defer c.reports.mu.Unlock()
	c.reports.hidden = yes
}

// reports has the reports of the source on itself.
type reports struct {
	mu   sync.Mutex
	made bool      // guarded by mu; the source has reported
	err  error     // guarded by mu; its last report
	well time.Time // guarded by mu; until when it was followed; zero while it is, or never was

	refused []string         // guarded by mu
	asOf    func() time.Time // guarded by mu; nil: derived from the reports
	every   time.Duration    // guarded by mu; how often that advances

	hidden  bool          // guarded by mu; the listed objects are not shown yet
	whole   chan struct{} // guarded by mu; closed when isWhole; nil when there was no doubt
	isWhole bool          // guarded by mu
}

// Report records whether the source can be followed at present; nil when it can. The source calls it whenever that
// changes.
func (c *Cluster) Report(err error) {
	r := &c.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.err == nil && r.made {
		r.well = time.Now()
	}
	r.made, r.err = true, err
}

// State returns the present state of the description. The source must not call it while it reports.
func (c *Cluster) State() State {
	txn := c.db.ReadTxn()
	services, _ := c.Services.table.Initialized(txn)
	slices, _ := c.EndpointSlices.table.Initialized(txn)
	r := &c.reports
	r.mu.Lock()
	s, asOf := State{Listed: services && slices && !r.hidden, Err: r.err, Refused: r.refused, Every: r.every}, r.asOf
	switch {
	case !s.Listed:
	case r.made && r.err == nil:
		s.AsOf = time.Now()
	default:
		s.AsOf = r.well
	}
	r.mu.Unlock()
	if s.Listed && asOf != nil {
		s.AsOf = asOf() // without the lock: the source reports while it holds its own
	}
	return s
}
