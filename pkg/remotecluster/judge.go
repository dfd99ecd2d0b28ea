package remotecluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Status describes the cluster at this moment.
func (c *Cluster) Status() Status {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	t := &c.track
	s := Status{
		Name: c.Name, ID: t.clusterID, ConfigFile: t.file, ConfigHash: t.hash, Endpoints: t.eps, EtcdClusterID: t.etcd,
		Connected: t.client != nil && t.probeError == nil, ConnectedSince: t.since,
		AnsweredID: t.answered, Capabilities: t.capabilities, Cached: t.capabilities != nil && t.capabilities.Cached,
		IDConflict: t.conflict, Failures: t.failures, ConsecFailures: t.consecutive,
		LastFailure: t.lastFailure, LastSuccess: t.lastSuccess, Certificate: t.certificate, Panics: t.panics,
		Sources: make(map[wire.Resource]SourceStatus, len(c.Sources)),
	}
	if t.lastError != nil {
		s.LastError = t.lastError.Error()
	}
	if t.lost != nil {
		s.LastLoss = t.lost.Error()
	}
	if !s.Connected {
		s.ConnectedSince = time.Time{}
	}
	if s.Heartbeat.Seen = t.heartbeat; !t.heartbeat.IsZero() {
		s.Heartbeat.Age = time.Since(t.heartbeat)
	}
	if t.client != nil {
		st := t.client.Status()
		s.Heartbeat, s.ProbeInterval = st.Heartbeat, st.ProbeInterval
	}
	s.Withheld, s.Revocations = t.contact.withheld, t.contact.times
	synced, serving := c.addSources(&s)
	s.Ready = s.Connected && serving && t.refusal == nil && !t.draining
	v := c.judge(s, synced, serving)
	if !s.Withheld.IsZero() && s.State != Removing {
		v = c.withheld(s, v)
	}
	s.State, s.Code, s.Message = v.state, v.code, v.text
	return s
}

// Find tells what is known of one key of a resource, by its name below the
// resource's prefix; false for nothing.
func (c *Cluster) Find(r wire.Resource, name string) (store.Found, bool) {
	for _, s := range c.Sources {
		if s.Resource() == r {
			return s.Find(name)
		}
	}
	return store.Found{}, false
}

// verdict is the state of a cluster with why it is so, in a person's words; without
// words when all is well.
type verdict struct {
	state State
	reason
}

// reason is a finding in words.
type reason struct {
	code codes.Code
	text string
}

func because(code codes.Code, format string, args ...any) reason {
	return reason{code, fmt.Sprintf(format, args...)}
}

// withheld adds to state and message that the backends are not used.
func (c *Cluster) withheld(s Status, v verdict) verdict {
	why := because(codes.WithoutContact, "its service backends are not used since %s, after %s without contact (--clustermesh-cache-ttl)", at(s.Withheld), c.CacheTTL)
	if v.state == Ready {
		return verdict{Degraded, why} // about to be taken back
	}
	v.text += "; " + why.text
	return v
}

// addSources fills in the sources and tells whether all that are needed have
// been synced and followed once, and whether all of these follow the present
// session. Between its first list and its first stream a source is still beginning:
// nothing has been lost.
func (c *Cluster) addSources(s *Status) (synced, serving bool) {
	t := &c.track
	synced, serving = true, true
	stale := c.staleAfter()
	for _, src := range c.Sources {
		st, r := c.stand(src), src.Resource()
		aside := r == c.Aside && st.late
		synced = synced && (st.Synced && st.Followed || st.late)
		serving = serving && (st.Synced && st.Following || st.late)
		s.Sources[r] = SourceStatus{
			Exported: t.capabilities == nil || t.capabilities.Exports(r), Late: st.late, Lag: st.Lag, SyncDuration: st.SyncDuration,
			Synced: st.Synced, Read: st.Read, Total: st.Total, Count: st.Count, Rejected: st.Rejected, Rejections: st.Rejections, Example: st.Example, Over: st.Over,
			// What is aside may never be listed.
			Freshness: Freshness{AsOf: st.AsOf, State: freshness(st.Status, s.Connected && (st.Synced || !aside), stale, time.Now())},
		}
		if aside && t.canaries != nil {
			is := s.Sources[r]
			is.Why = c.behind(r, st).text
			s.Sources[r] = is
		}
		if st.LastEvent.After(s.LastEvent) {
			s.LastEvent = st.LastEvent
		}
	}
	return synced, serving
}

// staleAfter is the age at which a copy that could not be confirmed is stale. The
// probes of a large cluster's agents are far apart; one that is late makes
// nothing stale. The tracker's mu is held.
func (c *Cluster) staleAfter() time.Duration {
	if c.track.client == nil {
		return c.Timings.StaleAfter
	}
	return max(c.Timings.StaleAfter, 3*c.track.client.Status().ProbeInterval)
}

// judge names the state and says why it is not ready. The tracker's mu is held.
func (c *Cluster) judge(s Status, synced, serving bool) verdict {
	t := &c.track
	switch {
	case t.draining:
		return verdict{Removing, because(codes.BeingRemoved, "its file is gone; its entries are being withdrawn")}
	case t.unusable != nil:
		return verdict{Failed, because(codes.FileUnusable, "the client file cannot be used: %v", t.unusable)}
	case t.refusal != nil:
		return verdict{Failed, c.refused()}
	case !serving && t.fault.recent(time.Now()):
		return verdict{stateOf(s.Connected, synced), t.fault.reason()}
	case !s.Connected && t.client != nil && synced:
		return verdict{Degraded, because(codes.EtcdSilent, "etcd does not answer since %s; what was known is kept: %v", at(t.lastSuccess), t.probeError)}
	case !s.Connected && synced:
		return verdict{Degraded, because(codes.ConnectionLost, "not connected since %s; what was known is kept: %s", at(t.lastSuccess), c.attempt())}
	case !s.Connected:
		return verdict{Connecting, because(codes.NotConnectedYet, "%s", c.attempt())}
	case !synced:
		return verdict{Syncing, c.progress()}
	case !serving:
		if over := c.listedForRoom(s); over.text != "" {
			return verdict{Degraded, over}
		}
		why := c.progress()
		return verdict{Degraded, because(codes.NotFollowed, "connected, but not everything is followed at this moment, what was known is kept: %s", why.text)}
	}
	if problem := c.problem(s); problem.text != "" {
		return verdict{Degraded, problem}
	}
	return verdict{Ready, reason{code: codes.AllFollowed}}
}

// stateOf is the state of a cluster that is not well.
func stateOf(connected, synced bool) State {
	switch {
	case synced:
		return Degraded
	case connected:
		return Syncing
	}
	return Connecting
}

// attempt says what stands between the cluster and a connection.
func (c *Cluster) attempt() string {
	t := &c.track
	switch {
	case t.probeError != nil:
		return fmt.Sprintf("etcd does not answer: %v", t.probeError)
	case t.lastError == nil:
		return "connecting"
	case t.at == phaseWait:
		return fmt.Sprintf("%v; trying again at %s", t.lastError, at(t.retryAt))
	}
	return fmt.Sprintf("connecting again after: %v", t.lastError)
}

// refused says why the present configuration cannot be used, or what has
// become of it since.
func (c *Cluster) refused() reason {
	t := &c.track
	code := codes.ConfigurationRefused
	if t.conflict != nil {
		code = codes.ClusterIDTaken
		if t.conflict.Remembered {
			code = codes.ClusterIDRemembered
		}
	}
	if no, is := errors.AsType[*Inadmissible](t.refusal); is {
		code = no.Code
	}
	if problem := t.config.problem(); problem != "" {
		return because(code, "%s; and that one cannot be used: %v", problem, t.refusal)
	}
	return because(code, "%v", t.refusal)
}

// progress says what a session that does not serve yet waits for.
func (c *Cluster) progress() reason {
	t := &c.track
	switch {
	case t.handing:
		return because(codes.Copying, "its configuration is to be written into the own kvstore first")
	case t.canaries != nil && t.at > phaseConfig:
	case t.config == nil:
		return because(codes.Copying, "connected") // about to list
	default:
		if problem := t.config.pending(); problem != "" {
			return because(codes.NoConfiguration, "%s", problem)
		}
		return because(codes.NoConfiguration, "waiting for the cluster configuration %s: %s", wire.ClusterConfigKey(c.Name), WhoseEtcd)
	}
	for _, src := range c.Sources {
		if st := c.stand(src); !st.late && !st.left && (!st.Synced || !st.Following) {
			return c.behind(src.Resource(), st)
		}
	}
	return because(codes.Copying, "finishing")
}

// behind says what a source waits for that is not followed in a session with
// canaries.
func (c *Cluster) behind(r wire.Resource, st standing) reason {
	switch t := &c.track; {
	case !t.canaries.seen(r):
		return because(codes.NoCanary, "waiting for the remote cluster to have written its %s (%s): %s",
			r, wire.SyncedKey(c.Name, r, t.canaries.cached), WriterRuns)
	case errors.Is(st.Err, store.ErrListTooLong):
		return c.listTooLong(r, st.Err)
	case errors.Is(st.Err, store.ErrStopped):
		return because(codes.CopyStopped, "copying %s: %d of %d so far: %v", r, max(st.Count-st.Pending, 0), st.Count, st.Err)
	case st.Err != nil && st.Synced:
		return because(codes.StreamBroken, "following %s: %v", r, st.Err)
	case st.Err != nil:
		return because(codes.ListFails, "listing %s: %v", r, st.Err)
	case st.Pending > 0:
		return because(codes.Copying, "copying %s: %d of %d so far", r, max(st.Count-st.Pending, 0), st.Count)
	case st.Synced && !st.Listing:
		return because(codes.NotFollowed, "following %s: all %d are listed, and their stream is not open yet", r, st.Count)
	case st.Total > 0:
		return because(codes.Copying, "listing %s: %d of %d so far", r, st.Read, st.Total)
	}
	return because(codes.Copying, "listing %s: %d so far", r, st.Count)
}

// problem says what is wrong with a session that serves; without words when
// nothing is.
func (c *Cluster) problem(s Status) reason {
	if c.track.fault.recent(time.Now()) {
		return c.track.fault.reason()
	}
	if problem := c.track.config.problem(); problem != "" {
		return because(codes.ConfigurationGone, "%s", problem)
	}
	for _, src := range c.Sources {
		if src.Resource() == c.Aside {
			continue
		}
		if problem := c.sourceProblem(src, s.Sources[src.Resource()]); problem.text != "" {
			return problem
		}
	}
	if !s.Certificate.IsZero() && time.Now().After(s.Certificate) {
		return because(codes.SessionOutlivesCertificate, "the client certificate expired at %s: the session goes on, but the server will refuse a new one; renew the certificate before the connection is lost", at(s.Certificate))
	}
	if hb := s.Heartbeat; hb.Stale {
		return because(codes.NoHeartbeat, "no heartbeat at %s since %s: etcd answers, but the cluster's writer may be gone; %s",
			wire.HeartbeatKey, at(latest(hb.Seen, c.track.since)), WriterRuns)
	}
	return reason{}
}

// sourceProblem says what is wrong with one resource; without words when nothing is.
func (c *Cluster) sourceProblem(src Source, is SourceStatus) reason {
	r, st := src.Resource(), c.stand(src)
	fresh := is.Freshness.State == FreshnessSynced
	switch {
	case st.late:
		return because(codes.DetailsMissing, "no canary %s: its %s are not read, so details of its backends are missing (nodes, zones, conditions); %s",
			wire.SyncedKey(c.Name, r, c.track.canaries.cached), r, WriterRuns)
	case errors.Is(st.Err, store.ErrListTooLong):
		return c.listTooLong(r, st.Err)
	case errors.Is(st.Err, store.ErrStopped):
		return because(codes.CopyStopped, "the copy of its %s is behind since %s: %v", r, at(is.Freshness.AsOf), st.Err)
	case st.Err != nil:
		return because(codes.StreamBroken, "%s: %v", r, st.Err)
	case !fresh && st.Pending > 0:
		return because(codes.CopyBehind, "the copy of its %s is behind since %s: %d are still to be written to our own kvstore", r, at(is.Freshness.AsOf), st.Pending)
	case !fresh:
		return because(codes.NotConfirmed, "%s could not be confirmed since %s", r, at(is.Freshness.AsOf))
	case is.Rejections[wire.ReasonBudget] > 0:
		return c.overBudget(r, is)
	case time.Since(st.Paced) < pacedShown:
		return because(codes.EventsPaced, "it sends more than %d events a second (%s): they are read more slowly than they come; --remote-budget %s.events=N allows more",
			c.Budget.Events, r, c.Name)
	case is.Rejected > 0 && is.Count == 0:
		return because(codes.AllRefused, "every one of its %d %s is refused: %s%s: check what writes them in that cluster", is.Rejected, r, reasons(is.Rejections), suchAs(st.Example))
	}
	return reason{}
}

// listedForRoom says what is over its budget while nothing else is wrong but that it is
// listed again, which is done every few minutes for what has room by then: the cluster
// does not change its state for that.
func (c *Cluster) listedForRoom(s Status) (over reason) {
	for _, src := range c.Sources {
		r, st := src.Resource(), c.stand(src)
		switch is := s.Sources[r]; {
		case st.late || st.Synced && st.Following:
		case !st.Synced || st.Err != nil || is.Rejections[wire.ReasonBudget] == 0:
			return reason{}
		case over.text == "":
			over = c.overBudget(r, is)
		}
	}
	return over
}

// pacedShown is for how long it is shown that events had to wait.
const pacedShown = 30 * time.Second

// overBudget says how much of a resource is refused because the cluster may not
// have more, and how to let it.
func (c *Cluster) overBudget(r wire.Resource, is SourceStatus) reason {
	share := c.Budget.Share(r)
	limit := map[string]string{
		"keys": fmt.Sprintf("%s.%s.keys=%d", c.Name, r, share.Keys), "bytes": fmt.Sprintf("%s.%s.bytes=%d", c.Name, r, share.Bytes),
		"value": fmt.Sprintf("%s.value=%d", c.Name, c.Budget.Value),
	}
	if is.Over&store.OverMemory != 0 {
		return because(codes.OverMemory, "some of its %s are refused: the entries of all remote clusters together take as much memory as they may, and its own about %d MiB; --remote-memory, or the memory limit, raises it",
			r, c.Memory.Used()>>20)
	}
	var exceeded []string
	for _, name := range is.Over.Names() {
		exceeded = append(exceeded, limit[name])
	}
	return because(codes.OverBudget, "it has more %s than its budget %s; the rest is refused; --remote-budget raises it", r, strings.Join(exceeded, ", "))
}

func (c *Cluster) listTooLong(r wire.Resource, err error) reason {
	return because(codes.ListTooLong, "listing %s: %v; --remote-budget %s.list=DURATION allows more", r, err, c.Name)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// at names a moment. Messages have no durations, which would make another text
// of the same state each second.
func at(moment time.Time) string {
	if moment.IsZero() {
		return "the start"
	}
	return moment.UTC().Format(time.RFC3339)
}

// suchAs names one of the entries that are refused, if one is known.
func suchAs(r store.Refusal) string {
	if text := r.String(); text != "" {
		return ", such as " + text
	}
	return ""
}

// reasons lists why entries are refused.
func reasons(by map[wire.Reason]int) string {
	var texts []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, fmt.Sprintf("%d for %s", by[reason], reason))
	}
	return strings.Join(texts, ", ")
}
