package findings

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// list formats names as "a, b and c".
func list(names []string) string { return printer.List(names, len(names)) }

// move is one change of a conflict: it began (no old), changed, or ended (no now).
type move struct {
	old, now *Conflict
}

// resolved is the kind of an event that reports the end of a conflict.
const resolved = "conflict-resolved"

// maxMoves is up to how many changed conflicts of a kind have events of their own: when two clusters are given the same
// network, one event is enough, and the conflicts are listed anyway.
const maxMoves = 10

// conflictEvents returns the events of some moves.
func conflictEvents(moves []move) []Event {
	type class struct {
		kind Kind
		verb string
	}
	var order []class
	by := make(map[class][]*Conflict)
	for _, m := range moves {
		what, c := class{verb: "conflict"}, m.now
		switch {
		case m.now == nil:
			what.verb, c = resolved, m.old
		case m.old != nil:
			what.verb = "conflict-changed"
		}
		what.kind = c.Kind
		if by[what] == nil {
			order = append(order, what)
		}
		by[what] = append(by[what], c)
	}
	var events []Event
	for _, what := range order {
		all := by[what]
		if len(all) > maxMoves {
			events = append(events, summary(what.verb, all))
			continue
		}
		for _, c := range all {
			events = append(events, conflictEvent(what.verb, c))
		}
	}
	return events
}

func conflictEvent(verb string, c *Conflict) Event {
	message := c.Message
	if verb == resolved {
		message = fmt.Sprintf("no longer in conflict: %s, between %s", c.Subject, list(c.Clusters))
	}
	return Event{
		Clusters: c.Clusters, Kind: verb, Code: c.Code, Message: message, Resource: "conflicts", Name: c.Key(),
		Evidence: map[string]string{"kind": string(c.Kind), "subject": c.Subject, "clusters": strings.Join(c.Clusters, ",")},
	}
}

// summary returns one event for many conflicts of a kind.
func summary(verb string, all []*Conflict) Event {
	first := all[0]
	text := map[string]string{"conflict": "new conflicts", "conflict-changed": "conflicts changed", resolved: "conflicts are resolved"}[verb]
	e := Event{
		Kind: verb, Code: first.Code, Resource: "conflicts",
		Message:  fmt.Sprintf("%d %s of kind %s, such as: %s", len(all), text, first.Kind, conflictEvent(verb, first).Message),
		Evidence: map[string]string{"kind": string(first.Kind), "count": strconv.Itoa(len(all)), "first": first.Subject, "last": all[len(all)-1].Subject},
	}
	for _, c := range all {
		e.Clusters = union(e.Clusters, c.Clusters)
	}
	return e
}

// idConflicts returns the cluster IDs that several clusters have. The holder of an ID counts; the others are left out.
func idConflicts(clusters []remotecluster.Status) (all []*Conflict) {
	ids := make(map[uint32][]string) // the holder of each first, then the others
	for i := range clusters {
		if c := clusters[i].IDConflict; c != nil {
			ids[c.ID] = union(ids[c.ID], []string{c.Holder, clusters[i].Name})
		}
	}
	for id, names := range ids {
		all = append(all, &Conflict{
			Kind: KindClusterID, Code: codes.ClusterIDConflict, Subject: strconv.Itoa(int(id)), Clusters: names,
			Rule:    "the first cluster keeps it until its client file is removed; the own cluster always keeps its ID",
			Message: fmt.Sprintf("cluster ID %d is used by %s; %s has it, and the agent does not read the others: give each cluster its own ID", id, list(names), names[0]),
		})
	}
	return all
}

// rangeConflicts returns the clusters with entries that are refused because their identities are outside of the
// cluster's range.
func rangeConflicts(clusters []remotecluster.Status) (all []*Conflict) {
	for i := range clusters {
		c := &clusters[i]
		var texts []string
		example := ""
		for _, r := range wire.Resources() {
			s := c.Families[r]
			if n := s.Rejections[wire.ReasonRange]; n > 0 {
				texts = append(texts, fmt.Sprintf("%d of its %s", n, r))
				if strings.HasPrefix(s.Example.Why, string(wire.ReasonRange)+":") {
					example = cmp.Or(example, ", such as "+s.Example.String())
				}
			}
		}
		if len(texts) == 0 {
			continue
		}
		all = append(all, &Conflict{
			Kind: KindIdentity, Code: codes.IdentityRangeConflict, Subject: c.Name, Clusters: []string{c.Name},
			Rule: "an identity outside of its cluster's range is never used",
			Message: fmt.Sprintf("%s have identities outside of the range of cluster %s (ID %d) and are refused%s",
				list(texts), c.Name, c.ID, example),
		})
	}
	return all
}
