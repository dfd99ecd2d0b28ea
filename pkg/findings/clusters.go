package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// clusterEvents returns the events of the clusters between two looks. Both lists are sorted by name. Short changes
// between the looks are found by the counters and times that they changed. The last ID of a cluster without one is kept
// in now, for the next look.
func clusterEvents(before, now []remotecluster.Status) []Event {
	var events []Event
	was := make(map[string]*remotecluster.Status, len(before))
	for i := range before {
		was[before[i].Name] = &before[i]
	}
	for i := range now {
		c := &now[i]
		old, known := was[c.Name]
		delete(was, c.Name)
		if !known {
			text := "client file " + c.ConfigFile
			if c.ConfigFile == "" {
				text = "a copy without a client file, which the mirror withdraws"
			}
			events = append(events, event(c, "cluster-added", codes.ClusterAdded, text, "file", c.ConfigFile))
			old = &remotecluster.Status{Name: c.Name, State: remotecluster.Connecting} // its first state
			if c.Connected {
				old.LastError = c.LastError // an error from before the connection
			}
		}
		events = append(events, changes(old, c)...)
		if c.ID == 0 {
			c.ID = old.ID
		}
	}
	for i := range before {
		if c := was[before[i].Name]; c != nil {
			events = append(events, event(c, "cluster-removed", codes.ClusterRemoved,
				"its client file is gone, and the agent withdrew all its entries", "file", c.ConfigFile))
		}
	}
	return append(events, holdEvents(before, now)...)
}

// ownEvents returns the events of the own cluster, which is not in the list of clusters: its kvstore is an item of
// health.
func ownEvents(before []remotecluster.Status, now remotecluster.Status) []Event {
	events := clusterEvents(before, []remotecluster.Status{now})
	for i := range events {
		events[i].Resource, events[i].Name = "health", "local-kvstore"
		if events[i].Code == codes.ClusterAdded {
			events[i].Message = "the own cluster is read from its kvstore"
			if now.ConfigFile != "" {
				events[i].Message += ", client file " + now.ConfigFile
			}
		}
	}
	return events
}

// changes returns the events of one cluster.
func changes(old, c *remotecluster.Status) []Event {
	var events []Event
	add := func(kind string, code codes.Code, message string, evidence ...string) {
		events = append(events, event(c, kind, code, message, evidence...))
	}
	session := !c.ConnectedSince.Equal(old.ConnectedSince)
	if old.Connected && (!c.Connected || session) {
		add("cluster-disconnected", codes.ClusterDisconnected, cmp.Or(c.LastLoss, "the session was ended"), "failures", strconv.Itoa(c.Failures))
	}
	if c.Connected && (!old.Connected || session) {
		add("cluster-connected", codes.ClusterConnected, "connected to "+strings.Join(c.Endpoints, ", "), "etcdClusterID", c.EtcdClusterID)
	}
	if old.EtcdClusterID != "" && c.EtcdClusterID != old.EtcdClusterID {
		add("etcd-changed", codes.EtcdChanged, fmt.Sprintf("another etcd answers: its cluster ID was %s and is %s", old.EtcdClusterID, c.EtcdClusterID),
			"before", old.EtcdClusterID, "now", c.EtcdClusterID)
	}
	if old.ID != 0 && c.ID != 0 && c.ID != old.ID {
		add("cluster-id-changed", codes.ClusterIDChanged, fmt.Sprintf("the cluster's ID was %d and is %d; its entries under the old ID were withdrawn", old.ID, c.ID),
			"before", strconv.Itoa(int(old.ID)), "now", strconv.Itoa(int(c.ID)))
	}
	switch {
	case c.State != old.State:
		add("cluster-"+string(c.State), stateCode(c.State), strings.TrimSuffix(fmt.Sprintf("%s, was %s: %s", c.State, old.State, c.Message), ": "),
			"before", string(old.State))
	case withoutPorts(c.LastError) != withoutPorts(old.LastError) && c.Failures > old.Failures && !old.Connected:
		add("cluster-error", codes.ClusterError, c.LastError, "failures", strconv.Itoa(c.Failures))
	}
	switch before, now := brokenFile(old), brokenFile(c); {
	case before == "" && now != "":
		add("client-file-broken", codes.ClientFileBroken, now, "file", c.ConfigFile)
	case before != "" && now == "" && c.State != remotecluster.Removing:
		add("client-file-well", codes.ClientFileWell, c.ConfigFile+" is a client file again", "file", c.ConfigFile)
	}
	switch {
	case old.Withheld.IsZero() && !c.Withheld.IsZero():
		add("backends-withheld", codes.BackendsWithheld, "without contact for too long: its service backends are not used; everything else is kept")
	case !old.Withheld.IsZero() && c.Withheld.IsZero():
		add("backends-back", codes.BackendsBack, "synced again: its service backends are used")
	}
	events = append(events, policyEvents(old, c)...)
	return append(events, rejections(old, c)...)
}

// brokenFile returns the problem of a client file that is no longer valid; empty for a valid one.
func brokenFile(c *remotecluster.Status) string {
	for _, n := range c.Notices {
		if n.Code == codes.ClientFileBroken {
			return n.Message
		}
	}
	return ""
}

// withoutPorts removes port numbers from a text, to compare errors: the local port is different in each attempt.
func withoutPorts(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, ":")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(":")
		text = strings.TrimLeft(after, "0123456789")
	}
}

func stateCode(s remotecluster.State) codes.Code {
	return cmp.Or(map[remotecluster.State]codes.Code{
		remotecluster.Ready: codes.ClusterReady, remotecluster.Syncing: codes.ClusterSyncing, remotecluster.Degraded: codes.ClusterDegraded,
		remotecluster.Failed: codes.ClusterFailed, remotecluster.Removing: codes.ClusterRemoving,
	}[s], codes.ClusterConnecting)
}

// rejections returns events when entries begin and cease to be refused.
func rejections(old, c *remotecluster.Status) []Event {
	var events []Event
	for _, r := range slices.Sorted(maps.Keys(c.Families)) {
		before, now := old.Families[r].Rejected, c.Families[r].Rejected
		switch {
		case before == 0 && now > 0:
			var reasons []string
			for reason, n := range c.Families[r].Rejections {
				reasons = append(reasons, fmt.Sprintf("%d for %s", n, reason))
			}
			slices.Sort(reasons)
			events = append(events, event(c, "entries-rejected", codes.EntriesRejected,
				fmt.Sprintf("%d of its %s refused: %s; their previous values stay", now, r, strings.Join(reasons, ", ")),
				"resource", string(r), "rejected", strconv.Itoa(now), "example", c.Families[r].Example.String()))
		case before > 0 && now == 0 && c.Families[r].Synced:
			events = append(events, event(c, "entries-accepted", codes.EntriesAccepted, fmt.Sprintf("its %s are no longer refused", r),
				"resource", string(r)))
		}
	}
	return events
}

// event returns an event about a cluster; evidence is name, value, name, value.
func event(c *remotecluster.Status, kind string, code codes.Code, message string, evidence ...string) Event {
	return Event{Clusters: []string{c.Name}, Kind: kind, Code: code, Message: message, Resource: "clusters", Name: c.Name, Evidence: pairs(evidence)}
}

// pairs returns a map from name, value, name, value.
func pairs(texts []string) map[string]string {
	m := make(map[string]string)
	for pair := range slices.Chunk(texts, 2) {
		m[pair[0]] = pair[1]
	}
	return m
}
