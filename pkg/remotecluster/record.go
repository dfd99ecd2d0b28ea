package remotecluster

import (
	"strconv"
	"time"
)

// This file connects the controller, which does the work, with the pure functions, which
// compute the state from the events.

// session holds the parts of the open session that a cluster uses.
type session struct {
	client   Client
	config   *configWatch // nil for the own cluster
	canaries *canaries    // nil before there is a configuration
}

// step applies an event, and calls Changed.
func (c *Cluster) step(e event) {
	c.note(e)
	c.Changed()
}

// note applies an event, and returns the states before and after it.
func (c *Cluster) note(e event) (before, after state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, after = c.state, c.state.after(e, time.Now())
	if c.state = after; before.contact != after.contact {
		c.moved.Notify()
	}
	return before, after
}

// current returns the state.
func (c *Cluster) current() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// open records the session that is used from now on.
func (c *Cluster) open(client Client, config *configWatch) {
	c.mu.Lock()
	c.session = session{client: client, config: config}
	c.mu.Unlock()
	st, etcd := client.Status(), ""
	if st.EtcdClusterID != 0 {
		etcd = strconv.FormatUint(st.EtcdClusterID, 16)
	}
	c.step(opened(st.LastSuccess, etcd))
}

// end records that the session has ended.
func (c *Cluster) end(why error) {
	c.mu.Lock()
	s, configAsOf := c.session, c.state.configAsOf
	c.mu.Unlock()
	if s.config != nil {
		configAsOf = s.config.watch.Status().AsOf
	}
	c.note(ended(why, s.client.Status().Heartbeat.Seen, configAsOf))
	c.mu.Lock()
	c.session = session{}
	c.mu.Unlock()
	c.Changed()
}

// setCanaries records the canaries that the families wait for from now on.
func (c *Cluster) setCanaries(canaries *canaries) {
	c.mu.Lock()
	c.session.canaries = canaries
	c.mu.Unlock()
	c.Changed()
}

// rules returns the settings of the cluster.
func (c *Cluster) rules() rules {
	return rules{
		name: c.Name, own: c.Origin == OriginLocal, skipOptional: c.Consumer.SkipOptional(), staleAfter: c.Timings.StaleAfter, cacheTTL: c.CacheTTL, budget: c.Budget,
	}
}

// look returns the judgment of this moment.
func (c *Cluster) look() judgment {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := facts{memory: c.Memory.Used(), families: make([]familyFacts, 0, len(c.families))}
	for _, s := range c.families {
		f.families = append(f.families, familyFacts{s.Resource(), s.Status()})
	}
	if s := c.session; c.state.open {
		st := s.client.Status()
		f.heartbeat, f.probeInterval, f.noSpace = st.Heartbeat, st.ProbeInterval, st.Server.NoSpace()
		f.version, f.faults, f.handshake = st.Server.Version, st.Server.Faults, st.Certificates.At
		f.serverEnds, f.authorityEnds = st.Certificates.Server(), st.Certificates.Authority()
		f.config = s.config.facts()
		f.canaries = s.canaries.facts()
	}
	return judge(c.rules(), c.state, f, time.Now())
}
