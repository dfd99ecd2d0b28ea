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
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Advice for a cluster that does not publish what it must. It follows the description of the problem in messages.
const (
	// WhoseEtcd is for a cluster without a configuration.
	WhoseEtcd = "is this the etcd of that cluster (or of its copies), does the file have the name of that cluster, and " + WriterRuns
	// WriterRuns is for a key that the cluster's writer has not written.
	WriterRuns = "does what writes it run: clustermesh-apiserver, mesh-agent operate, or the mirror of a copy?"
	// CheckWriter is for a value that cannot be decoded.
	CheckWriter = "check what writes it in that cluster"
)

// unwritten returns the codes of findings about keys that the remote cluster has not written.
func unwritten() []codes.Code {
	return []codes.Code{codes.NoConfiguration, codes.NoCanary, codes.EtcdEmpty, codes.EtcdOfAnother}
}

// progress returns what a session that does not serve yet waits for.
func (j *judgment) progress() reason {
	t := &j.state
	switch {
	case t.handing:
		return because(codes.Copying, "its configuration is to be written into the own kvstore first")
	case j.facts.canaries != nil && t.phase > phaseConfig:
	case j.facts.config == nil:
		return because(codes.Copying, "connected") // the own cluster, which is about to list
	default:
		if problem := j.facts.config.pending(); problem != "" {
			return because(codes.NoConfiguration, "%s", problem)
		}
		if instead := t.around.instead(j.rules.name); instead.text != "" {
			return instead
		}
		return because(codes.NoConfiguration, "waiting for the cluster configuration %s: %s", wire.ClusterConfigKey(j.rules.name), WhoseEtcd)
	}
	for i := range j.families {
		if st := &j.families[i]; st.waiting() {
			return j.behind(st)
		}
	}
	return because(codes.Copying, "finishing")
}

// behind returns why a family is not followed, in a session with canaries.
func (j *judgment) behind(st *contribution) reason {
	r := st.resource
	switch {
	case !j.facts.canaries.seen[r]:
		return because(codes.NoCanary, "waiting for the remote cluster to have written its %s (%s): %s",
			r, wire.SyncedKey(j.rules.name, r, j.facts.canaries.cached), WriterRuns)
	case errors.Is(st.Err, store.ErrListTooLong):
		return j.listTooLong(r, st.Err)
	case errors.Is(st.Err, syncstore.ErrStopped):
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

// problem returns the problem of a session that serves; the text is empty for none.
func (j *judgment) problem() reason {
	s := &j.status
	if j.state.fault.recent(j.now) {
		return j.state.fault.reason()
	}
	if problem := j.facts.config.problem(); problem != "" {
		if instead := j.state.around.instead(j.rules.name); instead.text != "" {
			return instead
		}
		return because(codes.ConfigurationGone, "%s", problem)
	}
	for i := range j.families {
		if j.rules.optional(j.families[i].resource) {
			continue
		}
		if problem := j.familyProblem(&j.families[i]); problem.text != "" {
			return problem
		}
	}
	if !s.Certificate.IsZero() && j.now.After(s.Certificate) {
		return because(codes.SessionOutlivesCertificate, "the client certificate expired at %s: the session continues, but the server will refuse a new one; renew the certificate before the connection is lost", at(s.Certificate))
	}
	if hb := s.Heartbeat; hb.Stale {
		return because(codes.NoHeartbeat, "no heartbeat at %s since %s: etcd answers, but the cluster's writer may be gone; %s",
			wire.HeartbeatKey, at(slices.MaxFunc([]time.Time{hb.Seen, j.state.since}, time.Time.Compare)), WriterRuns)
	}
	return reason{}
}

// familyProblem returns the problem of one resource; the text is empty for none.
func (j *judgment) familyProblem(st *contribution) reason {
	r, is := st.resource, j.status.Families[st.resource]
	fresh := is.Freshness.State == FreshnessSynced
	switch {
	case st.late:
		return because(codes.DetailsMissing, "no canary %s: its %s are not read, so details of its backends are missing (nodes, zones, conditions); %s",
			wire.SyncedKey(j.rules.name, r, j.facts.canaries.cached), r, WriterRuns)
	case errors.Is(st.Err, store.ErrListTooLong):
		return j.listTooLong(r, st.Err)
	case errors.Is(st.Err, syncstore.ErrStopped):
		return because(codes.CopyStopped, "the copy of its %s is behind since %s: %v", r, at(is.Freshness.AsOf), st.Err)
	case st.Err != nil:
		return because(codes.StreamBroken, "%s: %v", r, st.Err)
	case !fresh && st.Pending > 0:
		return because(codes.CopyBehind, "the copy of its %s is behind since %s: %d are still to be written to our own kvstore", r, at(is.Freshness.AsOf), st.Pending)
	case !fresh:
		return because(codes.NotConfirmed, "%s could not be confirmed since %s", r, at(is.Freshness.AsOf))
	case is.Rejections[wire.ReasonBudget] > 0:
		return j.overBudget(r, is)
	case j.now.Sub(st.Paced) < pacedShown:
		return because(codes.EventsPaced, "it sends more than %d events per second (%s), so the agent reads them with a delay; --remote-budget %s.events=N allows more",
			j.rules.budget.Events, r, j.rules.name)
	case is.Rejected > 0 && is.Count == 0:
		return because(codes.AllRefused, "every one of its %d %s is refused: %s%s: check what writes them in that cluster", is.Rejected, r, reasons(is.Rejections), suchAs(st.Example))
	}
	return reason{}
}

// listedForRoom returns the finding for a resource over its budget that is listed again; the
// text is empty if there is another problem. The resource is listed every few minutes,
// because more of its entries may fit by then. This does not change the state of the cluster.
func (j *judgment) listedForRoom() (over reason) {
	for i := range j.families {
		st := &j.families[i]
		switch is := j.status.Families[st.resource]; {
		case st.late || st.Synced && st.Following:
		case !st.Synced || st.Err != nil || is.Rejections[wire.ReasonBudget] == 0:
			return reason{}
		case over.text == "":
			over = j.overBudget(st.resource, is)
		}
	}
	return over
}

// pacedShown is how long the status shows that events had to wait.
const pacedShown = 30 * time.Second

// overBudget returns which limits of the budget a resource exceeds, and the option that
// raises them.
func (j *judgment) overBudget(r wire.Resource, is FamilyStatus) reason {
	share := j.rules.budget.Share(r)
	limit := map[string]string{
		"keys": fmt.Sprintf("%s.%s.keys=%d", j.rules.name, r, share.Keys), "bytes": fmt.Sprintf("%s.%s.bytes=%d", j.rules.name, r, share.Bytes),
		"value": fmt.Sprintf("%s.value=%d", j.rules.name, j.rules.budget.Value),
	}
	if is.Over&store.OverMemory != 0 {
		return because(codes.OverMemory, "some of its %s are refused: the entries of all remote clusters together have reached the limit of --remote-memory, and its own take about %d MiB; raise --remote-memory, or the memory limit of the process",
			r, j.facts.memory>>20)
	}
	var exceeded []string
	for _, name := range is.Over.Names() {
		exceeded = append(exceeded, limit[name])
	}
	return because(codes.OverBudget, "it has more %s than its budget %s; the rest is refused; --remote-budget raises it", r, strings.Join(exceeded, ", "))
}

func (j *judgment) listTooLong(r wire.Resource, err error) reason {
	return because(codes.ListTooLong, "listing %s: %v; --remote-budget %s.list=DURATION allows more", r, err, j.rules.name)
}

// at formats a moment for messages. Messages have no durations: these would change the
// text every second while the state stays the same.
func at(moment time.Time) string {
	if moment.IsZero() {
		return "the start"
	}
	return moment.UTC().Format(time.RFC3339)
}

// suchAs returns the end of a sentence that names one refused entry; empty if none is known.
func suchAs(r store.Refusal) string {
	if text := r.String(); text != "" {
		return ", such as " + text
	}
	return ""
}

// reasons lists the number of refused entries for each reason.
func reasons(by map[wire.Reason]int) string {
	var texts []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, fmt.Sprintf("%d for %s", by[reason], reason))
	}
	return strings.Join(texts, ", ")
}
