package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Finding is something about the identities that an operator should know.
type Finding struct {
	// Kind is one of the kinds below; Code says more exactly which finding it is.
	Kind string     `json:"kind"`
	Code codes.Code `json:"code"`
	// Severity is that of the code: an error breaks traffic, now or soon; a warning needs attention; an info finding
	// repairs itself.
	Severity codes.Severity `json:"severity"`
	// Subject is the number, the labels or the key.
	Subject string `json:"subject"`
	// Message describes the problem, Remedy the repair.
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// The kinds of findings.
const (
	OutOfRange       = "out-of-range"
	NoMapping        = "reference-without-mapping"
	OtherMapping     = "reference-to-another-mapping"
	NoReference      = "mapping-without-reference"
	EqualLabels      = "equal-labels"
	Unreadable       = "unreadable"
	RangeRunningFull = "range-running-full"
)

// Report is what [Check] found.
type Report struct {
	Cluster    string `json:"cluster"`
	First      uint32 `json:"first"`
	Last       uint32 `json:"last"`
	Mappings   int    `json:"mappings"` // within the range
	InUse      int    `json:"inUse"`    // of those, with a reference
	References int    `json:"references"`
	Free       int    `json:"free"`
	// PerDay is how many are made a day at the present rate; nil when the rate is
	// not known, since the heartbeats are missing that would tell.
	PerDay *float64 `json:"perDay"`
	// RateOver is the time over which the rate was seen.
	RateOver string `json:"rateOver,omitempty"`
	// DaysLeft is when the range is full at this rate, if nothing is collected;
	// nil when the rate is not known or 0.
	DaysLeft *float64  `json:"daysLeft"`
	Findings []Finding `json:"findings"`

	severities map[codes.Code]codes.Severity
}

// soon is when a range that runs full is worth a warning.
const soon = 30 * 24 * time.Hour

// shortest is over how short a time a rate is accepted.
const shortest = time.Minute

// Check finds the problems of a cluster's identities. It is pure: equal arguments give equal reports.
func Check(c Owner, contents *Contents) Report {
	r := &Report{Cluster: c.Name, References: len(contents.References), Findings: []Finding{}, severities: codes.Severities()}
	r.First, r.Last = c.Range()
	byID := make(map[uint64]Mapping, len(contents.Mappings))
	for _, m := range slices.Concat(contents.Mappings, contents.Unreadable) {
		byID[m.ID] = m
	}
	used := contents.usage()
	r.references(contents.References, byID, used)
	published := contents.Published()
	if len(contents.References) == 0 && len(published) > 0 {
		r.add(NoReference, codes.IdentitiesWithoutNodes, c.Name, "addresses are published with identities, and no node holds a reference of any: "+
			"one process writes all of this from objects of Kubernetes (CRD mode)",
			"nothing, but never collect garbage here: identities that are in use would be deleted")
	}
	r.mappings(byID, used, published, contents.Collectable(c) == nil)
	r.equalLabels(contents, r.duplicates(FindDuplicates(contents)))
	r.uses(contents.Uses)
	for _, m := range contents.Malformed {
		r.add(Unreadable, codes.IdentityUnreadable, m.Key, m.Why, "no reader can use it; delete the key if no current writer needs it")
	}
	r.pace(contents.Pace)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return rank(a.Severity) - rank(b.Severity) })
	return *r
}

func rank(s codes.Severity) int {
	return slices.Index([]codes.Severity{codes.Error, codes.Warning, codes.Info}, s)
}

// Count is the number of findings of a severity.
func (r *Report) Count(s codes.Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

func (r *Report) add(kind string, code codes.Code, subject, message, remedy string) {
	r.Findings = append(r.Findings, Finding{kind, code, r.severities[code], subject, message, remedy})
}

func (r *Report) within(id uint64) bool { return uint64(r.First) <= id && id <= uint64(r.Last) }

func (r *Report) references(references []Reference, mappings map[uint64]Mapping, used *allocator.Usage) {
	for _, ref := range references {
		uses, mapped := used.Reference(ref.Key, ref.ID)
		subject := fmt.Sprintf("%d on %s", ref.ID, ref.Node)
		switch {
		case !mapped:
			r.add(NoMapping, codes.ReferenceWithoutMapping, subject,
				fmt.Sprintf("%s uses %d for %s, without a mapping: other nodes may allocate the number for other labels", ref.Node, ref.ID, ref.Key),
				"the node puts it back when it refreshes its keys; if it does not, restart its agent")
		case !uses:
			r.add(OtherMapping, codes.ReferenceToOtherMapping, subject,
				fmt.Sprintf("%s uses %d for %s, but it stands for %s", ref.Node, ref.ID, ref.Key, mappings[ref.ID].Key),
				"restart the agent of that node, so that its pods get another identity")
		}
		if !r.within(ref.ID) {
			r.add(OutOfRange, codes.IdentityOutOfRange, subject,
				fmt.Sprintf("%s uses %d, which is outside %d to %d: other clusters refuse it", ref.Node, ref.ID, r.First, r.Last),
				"check --cluster-id and --max-connected-clusters on that node")
		}
	}
}

func (r *Report) mappings(mappings map[uint64]Mapping, used *allocator.Usage, published map[uint64]int, collected bool) {
	unused := "nothing: garbage collection deletes it when it is still unused in its second round"
	if !collected {
		unused = "nothing now: garbage collection deletes no identity as long as one that addresses are published with has no reference"
	}
	for _, id := range slices.Sorted(maps.Keys(mappings)) {
		m := mappings[id]
		if r.within(id) {
			r.Mappings++
		} else {
			r.add(OutOfRange, codes.MappingOutOfRange, fmt.Sprint(id),
				fmt.Sprintf("the mapping from %d to %s is outside %d to %d; it is never collected, and other clusters refuse it", id, m.Key, r.First, r.Last),
				"it remains from another cluster ID; delete its key once nothing uses it")
		}
		switch {
		case used.InUse(id) && r.within(id):
			r.InUse++
		case used.InUse(id) || published[id] > 0 && r.References == 0:
		case published[id] > 0:
			r.add(NoReference, codes.PublishedWithoutNode, fmt.Sprint(id),
				fmt.Sprintf("no node holds a reference of %s, though addresses (%d) are published with it", m.Key, published[id]),
				"the node that publishes them writes its reference when it refreshes its keys; if it does not, restart its agent")
		case r.within(id):
			r.add(NoReference, codes.MappingUnused, fmt.Sprint(id), fmt.Sprintf("no node uses %s", cmp.Or(m.Key, "it, and it has no labels")), unused)
		}
	}
	r.Free = int(r.Last) - int(r.First) + 1 - r.Mappings
}

// duplicates adds labels that are in use under several numbers, and returns them.
func (r *Report) duplicates(all []Duplicates) map[string]bool {
	inUse := make(map[string]bool)
	for _, t := range all {
		inUse[wire.ParseLabels(t.Labels).Encode()] = true
		text := t.Keep.String()
		for _, u := range t.Withdraw {
			text += "; " + u.String()
		}
		r.add(EqualLabels, codes.LabelsInUseTwice, t.Labels, "nodes use them under several numbers: "+text,
			"'mesh-agent identity heal' keeps one of them; restart agents of Cilium that refer to another one first")
	}
	return inUse
}

// equalLabels finds sets of labels with several numbers, regardless of the order of the labels, except for those in use
// under several numbers.
func (r *Report) equalLabels(contents *Contents, inUse map[string]bool) {
	numbers := make(map[string][]uint64)
	for _, m := range contents.Mappings {
		labels := wire.ParseLabels(m.Key).Encode()
		numbers[labels] = append(numbers[labels], m.ID)
	}
	for _, labels := range slices.Sorted(maps.Keys(numbers)) {
		ids := slices.Sorted(slices.Values(numbers[labels]))
		if len(ids) < 2 || inUse[labels] {
			continue
		}
		texts := make([]string, len(ids))
		for i, id := range ids {
			texts[i] = fmt.Sprint(id)
		}
		r.add(EqualLabels, codes.LabelsWithSeveralNumbers, labels, "they have several numbers: "+strings.Join(texts, ", "),
			"one is enough: restart the agents that hold references of the others, and let garbage collection delete them")
	}
}

func (r *Report) uses(uses []Use) {
	for _, u := range uses {
		if u.ID >= wire.IdentityReservedEnd && !r.within(uint64(u.ID)) {
			r.add(OutOfRange, codes.IdentityOutOfRange, u.Address,
				fmt.Sprintf("the address is published with identity %d, which is outside %d to %d: other clusters refuse it", u.ID, r.First, r.Last),
				"check --cluster-id and --max-connected-clusters on the node that publishes it")
		}
	}
}

func (r *Report) pace(p Pace) {
	if p.In < shortest {
		return
	}
	days := p.In.Hours() / 24
	perDay := float64(p.Made) / days
	r.PerDay, r.RateOver = &perDay, p.In.Round(time.Second).String()
	if p.Made == 0 {
		return
	}
	left := float64(r.Free) / perDay
	if r.DaysLeft = &left; left < soon.Hours()/24 {
		r.add(RangeRunningFull, codes.IdentitiesRunOut, r.Cluster,
			fmt.Sprintf("at the present rate (%d in %s) the last of %d free identities is used in %.1f days", p.Made, r.RateOver, r.Free, left),
			"find out which labels change all the time and exclude them from identities; see that garbage collection runs")
	}
}

// history returns how far back the kvstore's history is known, as a revision and as a time before at: etcd has no
// clock, but the heartbeat, which is written every minute, holds the time (wire.md §1.10). The time is 0 when there are
// not two heartbeats to compare.
func history(ctx context.Context, client kvstore.Client, at kvstore.Position) (revision int64, span time.Duration, err error) {
	last, err := readHeartbeat(ctx, client, at)
	if err != nil || last.when.IsZero() {
		return 0, 0, err
	}
	// The oldest revision that is still there lies between lo, which is not, and hi.
	lo, hi := int64(0), at.Revision
	first := last
	for lo+1 < hi {
		mid := lo + (hi-lo)/2
		earlier, err := readHeartbeat(ctx, client, kvstore.Position{ClusterID: at.ClusterID, Revision: mid})
		switch {
		case errors.Is(err, kvstore.ErrCompacted):
			lo = mid
		case err != nil:
			return 0, 0, err
		case earlier.when.IsZero():
			lo = mid // the key did not exist yet
		default:
			hi, first = mid, earlier
		}
	}
	return first.revision, last.when.Sub(first.when), nil
}

// heartbeat has a zero time when there was none, or none that can be read.
type heartbeat struct {
	revision int64
	when     time.Time
}

func readHeartbeat(ctx context.Context, client kvstore.Client, at kvstore.Position) (h heartbeat, err error) {
	past, err := client.Recall(ctx, wire.HeartbeatKey, "", at, 1, kvstore.OneKey())
	if err != nil {
		return h, fmt.Errorf("reading earlier heartbeats: %w", err)
	}
	for _, kv := range past.Items {
		if when, err := time.Parse(time.RFC3339Nano, string(kv.Value)); err == nil {
			return heartbeat{kv.ModRevision, when}, nil
		}
	}
	return h, nil
}
