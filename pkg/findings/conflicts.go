package findings

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// addressConflict is the conflict that the claims on a prefix make, the winner
// first. There are claims of more than one cluster among them.
func addressConflict(p netip.Prefix, claims []*ipcache.Entry) *Conflict {
	c := &Conflict{Kind: kindOf(claims), Subject: p.String()}
	winner := claims[0]
	var rival *ipcache.Entry // the strongest claim of another cluster
	for _, e := range claims {
		if name := e.Cluster().Name; !c.Involves(name) {
			c.Clusters = append(c.Clusters, name)
		}
		if rival == nil && *e.Cluster() != *winner.Cluster() {
			rival = e
		}
	}
	c.Message = fmt.Sprintf("%s is claimed by %s; %s counts (%s). Traffic for the others goes there: give each cluster addresses of its own",
		p, list(c.Clusters), winner.Cluster().Name, rival.Weakness(winner))
	return c
}

// kindOf is the kind of the conflict between claims on one prefix.
func kindOf(claims []*ipcache.Entry) Kind {
	all := func(is func(ipcache.Kind) bool) bool {
		return !slices.ContainsFunc(claims, func(e *ipcache.Entry) bool { return !is(e.Kind()) })
	}
	switch {
	case all(func(k ipcache.Kind) bool { return k == ipcache.KindPodCIDR }):
		return KindPodCIDR
	case all(func(k ipcache.Kind) bool {
		return k == ipcache.KindNode || k == ipcache.KindHealth || k == ipcache.KindIngress
	}):
		return KindNodeIP
	default:
		return KindIP
	}
}

// list is "a, b and c".
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// move is one step of a conflict: it came (no old), changed, or went (no now).
type move struct {
	old, now *Conflict
}

// maxMoves is how many conflicts of a kind are told one by one. When two
// clusters are given the same network at once, one line says it all; the
// conflicts themselves are listed anyway.
const maxMoves = 10

// conflictEvents are the events of some conflicts' moves.
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
			what.verb, c = "conflict-resolved", m.old
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
	if verb == "conflict-resolved" {
		message = fmt.Sprintf("no longer in conflict: %s, between %s", c.Subject, list(c.Clusters))
	}
	return Event{
		Clusters: c.Clusters, Kind: verb, Code: c.code(), Message: message, Resource: "conflicts", Name: c.Key(),
		Evidence: map[string]string{"kind": string(c.Kind), "subject": c.Subject, "clusters": strings.Join(c.Clusters, ",")},
	}
}

// summary is one event for many conflicts of a kind.
func summary(verb string, all []*Conflict) Event {
	first := all[0]
	text := map[string]string{"conflict": "new conflicts", "conflict-changed": "conflicts changed", "conflict-resolved": "conflicts are resolved"}[verb]
	e := Event{
		Kind: verb, Code: first.code(), Resource: "conflicts",
		Message:  fmt.Sprintf("%d %s of kind %s, such as: %s", len(all), text, first.Kind, conflictEvent(verb, first).Message),
		Evidence: map[string]string{"kind": string(first.Kind), "count": strconv.Itoa(len(all)), "first": first.Subject, "last": all[len(all)-1].Subject},
	}
	for _, c := range all {
		for _, name := range c.Clusters {
			if !e.Involves(name) {
				e.Clusters = append(e.Clusters, name)
			}
		}
	}
	return e
}

func (c *Conflict) code() codes.Code {
	if c.Kind == KindClusterID {
		return codes.ClusterIDConflict
	}
	return codes.AddressConflict
}

// idConflicts compares the cluster IDs that were in conflict with those that
// are. The one who holds an ID counts; the others are left out.
func idConflicts(before, now []remotecluster.Status) (came []*Conflict, gone []string) {
	are := sharedIDs(now)
	for _, id := range slices.Sorted(maps.Keys(are)) {
		names := are[id]
		came = append(came, &Conflict{
			Kind: KindClusterID, Subject: strconv.Itoa(int(id)), Clusters: names,
			Message: fmt.Sprintf("cluster ID %d is that of %s; %s has it, and nothing is read of the others: give each cluster an ID of its own", id, list(names), names[0]),
		})
	}
	for id := range sharedIDs(before) {
		if are[id] == nil {
			gone = append(gone, fmt.Sprintf("%s/%d", KindClusterID, id))
		}
	}
	return came, gone
}

// sharedIDs are the IDs that several clusters have, each with its holder and
// then the others.
func sharedIDs(clusters []remotecluster.Status) map[uint32][]string {
	ids := make(map[uint32][]string)
	for i := range clusters {
		if c := clusters[i].IDConflict; c != nil {
			if ids[c.ID] == nil {
				ids[c.ID] = []string{c.Holder}
			}
			ids[c.ID] = append(ids[c.ID], clusters[i].Name)
		}
	}
	return ids
}
