package remotecluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// judgment is the description of a cluster at one moment. It depends only on the settings,
// the state, the facts and the time.
type judgment struct {
	rules rules
	state state
	facts facts
	now   time.Time

	families []contribution
	status   Status
	synced   bool // every family that the cluster waits for has been synced and followed once
	serving  bool // every such family follows in the present session
}

// judge describes a cluster.
func judge(r rules, t state, f facts, now time.Time) judgment {
	j := judgment{rules: r, state: t, facts: f, now: now, families: make([]contribution, 0, len(f.families))}
	j.status = Status{
		Name: r.name, ID: t.clusterID, ConfigFile: t.file, ConfigHash: t.hash, Endpoints: t.endpoints, EtcdClusterID: t.etcd,
		Connected: t.open && t.probeError == nil, ConnectedSince: t.since,
		AnsweredID: t.answered, Capabilities: t.capabilities, Cached: t.capabilities != nil && t.capabilities.Cached,
		IDConflict: t.conflict, Failures: t.failures, ConsecFailures: t.consecutive,
		LastFailure: t.lastFailure, LastSuccess: t.lastSuccess, Certificate: t.certificate, Panics: t.panics,
		Withheld: t.contact.withheld, Revocations: t.contact.times,
		Families: make(map[wire.Resource]FamilyStatus, len(f.families)),
	}
	s := &j.status
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
		s.Heartbeat.Age = now.Sub(t.heartbeat)
	}
	if t.open {
		s.Heartbeat, s.ProbeInterval, s.NoSpace = f.heartbeat, f.probeInterval, f.noSpace
		s.ServerVersion, s.ServerCertificate, s.AuthorityCertificate = f.version, f.serverEnds, f.authorityEnds
	}
	j.addFamilies()
	s.Ready = s.Connected && j.serving && t.refusal == nil && !t.draining
	v := j.verdict()
	if !s.Withheld.IsZero() && v.state != Removing {
		v = j.withheld(v)
	}
	s.State, s.Code, s.Cause, s.Message = v.state, v.code, j.cause(v.code), v.text
	s.Notices = j.notices()
	return j
}

// verdict is the state of a cluster with the reason for it, as text for the user. The text
// is empty when there is no problem.
type verdict struct {
	state State
	reason
}

// reason is a finding: its code and its text.
type reason struct {
	code codes.Code
	text string
}

func because(code codes.Code, format string, args ...any) reason {
	return reason{code, fmt.Sprintf(format, args...)}
}

// withheld adds to the state and the message that the service backends are not used.
func (j *judgment) withheld(v verdict) verdict {
	why := because(codes.WithoutContact, "its service backends are not used since %s, after %s without contact (--clustermesh-cache-ttl)", at(j.status.Withheld), j.rules.cacheTTL)
	if v.state == Ready {
		return verdict{Degraded, why} // the backends are about to be used again
	}
	v.text += "; " + why.text
	return v
}

// contribution is the part of one family in the judgment, at this moment.
type contribution struct {
	store.Status
	resource wire.Resource
	// late: the canary is overdue, or the resource is optional and not followed; the
	// cluster is used without the resource.
	late bool
	// left: the resource is no longer exported, and its entries are kept until the
	// other families are synced.
	left bool
}

// waiting reports whether the cluster waits for the family in the present session.
func (c *contribution) waiting() bool { return !c.late && !c.left && (!c.Synced || !c.Following) }

// optional reports whether this cluster does not wait for the resource because it is optional.
func (r rules) optional(of wire.Resource) bool { return r.skipOptional && of.Describe().Optional }

// contribution describes a family. The configuration shows that a resource is not exported:
// its copy, which is empty, is then as fresh as the configuration.
func (j *judgment) contribution(src familyFacts) contribution {
	caps, r := j.state.capabilities, src.resource
	c := contribution{Status: src.Status, resource: r}
	switch {
	case caps == nil:
	case !caps.Exports(r) && c.Count > 0:
		c.Synced, c.Followed, c.left = true, true, true
	case !caps.Exports(r):
		c.Status = store.Status{FollowStatus: store.FollowStatus{Synced: true, Followed: true, AsOf: j.state.configAsOf}}
		if cfg := j.facts.config; cfg != nil {
			c.Following, c.AsOf, c.Err = cfg.Following, cfg.AsOf, cfg.Err
		}
	case j.rules.optional(r):
		c.late = !c.Synced || !c.Following
	case caps.Details(r):
		c.late = j.state.late[r]
	}
	return c
}

// addFamilies fills in the families. A family that has its first list but not yet its first
// stream is still starting: the cluster is syncing, not degraded.
func (j *judgment) addFamilies() {
	j.synced, j.serving = true, true
	stale := j.rules.staleAfter
	if j.state.open {
		// Agents of a large cluster probe seldom. One late probe must not make a resource stale.
		stale = max(stale, 3*j.facts.probeInterval)
	}
	for _, src := range j.facts.families {
		st := j.contribution(src)
		j.families = append(j.families, st)
		skipped := j.rules.optional(st.resource) && st.late
		j.synced = j.synced && (st.Synced && st.Followed || st.late)
		j.serving = j.serving && (st.Synced && st.Following || st.late)
		is := FamilyStatus{
			Exported: j.state.capabilities == nil || j.state.capabilities.Exports(st.resource), Late: st.late, Lag: st.Lag, SyncDuration: st.SyncDuration,
			Synced: st.Synced, Read: st.Read, Total: st.Total, Count: st.Count, Rejected: st.Rejected, Rejections: st.Rejections, Example: st.Example, Over: st.Over,
			// An optional resource may never be listed: it does not count as syncing then.
			Freshness: Freshness{
				AsOf:  st.KnownAsOf(),
				State: freshness(st.Status, j.status.Connected && (st.Synced || !skipped), max(stale, 2*st.Every), j.now),
			},
		}
		if skipped && j.facts.canaries != nil {
			is.Why = j.behind(&st).text
		}
		j.status.Families[st.resource] = is
		if st.LastEvent.After(j.status.LastEvent) {
			j.status.LastEvent = st.LastEvent
		}
	}
}

// verdict returns the state, and the reason if the cluster is not ready.
func (j *judgment) verdict() verdict {
	t := &j.state
	switch {
	case t.draining:
		return verdict{Removing, because(codes.BeingRemoved, "its file is gone; its entries are being withdrawn")}
	case t.unusable != nil:
		return verdict{Failed, because(codes.FileUnusable, "the client file cannot be used: %v", t.unusable)}
	case t.refusal != nil:
		return verdict{Failed, j.refused()}
	case !j.serving && t.fault.recent(j.now):
		return verdict{stateOf(j.status.Connected, j.synced), t.fault.reason()}
	case !j.status.Connected && t.open && j.synced:
		return verdict{Degraded, because(codes.EtcdSilent, "etcd has not answered since %s; its data is kept: %v", at(t.lastSuccess), t.probeError)}
	case !j.status.Connected && j.synced:
		return verdict{Degraded, because(codes.ConnectionLost, "not connected since %s; its data is kept: %s", at(t.lastSuccess), j.attempt())}
	case !j.status.Connected:
		return verdict{Connecting, because(codes.NotConnectedYet, "%s", j.attempt())}
	case !j.synced:
		return verdict{Syncing, j.progress()}
	case !j.serving:
		if over := j.listedForRoom(); over.text != "" {
			return verdict{Degraded, over}
		}
		why := j.progress()
		if slices.Contains(unwritten(), why.code) { // the remote cluster must write it first
			return verdict{Degraded, because(why.code, "%s", kept(why.text))}
		}
		return verdict{Degraded, because(codes.NotFollowed, "connected, but some resources are not watched at the moment; its data is kept: %s", why.text)}
	}
	if problem := j.problem(); problem.text != "" {
		return verdict{Degraded, problem}
	}
	return verdict{Ready, reason{code: codes.AllFollowed}}
}

// cause returns the code of the error behind the finding with this code; empty for none.
func (j *judgment) cause(code codes.Code) codes.Code {
	switch code {
	case codes.FileUnusable:
		return hint.Code(j.state.unusable)
	case codes.EtcdSilent, codes.ConnectionLost, codes.NotConnectedYet:
		return hint.Code(cmp.Or(j.state.probeError, j.state.lastError))
	case codes.ListFails, codes.StreamBroken:
		for i := range j.families {
			if err := j.families[i].Err; err != nil {
				return hint.Code(err)
			}
		}
	}
	return ""
}

// kept adds to the text of a problem that the data is kept.
func kept(why string) string {
	if strings.HasSuffix(why, "?") {
		return why + " Its data is kept."
	}
	return why + "; its data is kept"
}

// stateOf returns the state of a cluster that has a problem.
func stateOf(connected, synced bool) State {
	switch {
	case synced:
		return Degraded
	case connected:
		return Syncing
	}
	return Connecting
}

// attempt returns the text that describes why the cluster has no working connection.
func (j *judgment) attempt() string {
	t := &j.state
	switch {
	case t.probeError != nil:
		return fmt.Sprintf("etcd does not answer: %v", t.probeError)
	case t.lastError == nil:
		return "connecting"
	case t.phase == phaseWait:
		return fmt.Sprintf("%v; trying again at %s", t.lastError, at(t.retryAt))
	}
	return fmt.Sprintf("connecting again after: %v", t.lastError)
}

// refused returns why the present configuration cannot be used. If its key was deleted since, or has
// a value that cannot be read, the text begins with that.
func (j *judgment) refused() reason {
	t := &j.state
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
	if problem := j.facts.config.problem(); problem != "" {
		return because(code, "%s; and that one cannot be used: %v", problem, t.refusal)
	}
	return because(code, "%v", t.refusal)
}
