package reasons

import (
	"fmt"
	"strconv"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Node explains the known facts about a node, and whether its addresses count as its own.
func Node(v *Facts, cluster, name string) api.Explanation {
	x := api.Explanation{Steps: []api.Step{}}
	at, now := v.asOf(cluster, wire.Nodes)
	n, _, found := v.Nodes.Table().Get(v.Txn, nodes.ByName(cluster, name))
	refused := v.refusedOf(cluster, wire.Nodes)
	switch {
	case !found && now && refused != "":
		x.Steps = append(x.Steps, api.Step{
			Code: codes.NodesRefused, Cluster: cluster, Text: "may have it: " + refused, Keys: v.keys(cluster, wire.Nodes, name), AsOf: at,
		})
		x.Verdict = verdictf(codes.NodeUnknown, "it is not known whether %s has a node %s: %s", cluster, name, refused)
		return x
	case !found && now:
		x.Verdict = verdictf(codes.NodeNowhere, "%s has no node %s", cluster, name)
		return x
	case !found:
		x.Verdict = verdictf(codes.NodeUnknown, "it is not known whether %s has a node %s: its nodes: %s", cluster, name, v.unconfirmed(cluster, at))
		return x
	}
	x.Steps = append(x.Steps, api.Step{Code: codes.NodeRead, Cluster: cluster, Text: "published by its cluster", Keys: v.keys(cluster, wire.Nodes, name), AsOf: at})
	lost := ""
	for _, a := range n.Addresses {
		step := v.nodeAddress(n, a)
		if step.Code == codes.NodeClaimLost {
			lost = a.IP.String()
		}
		x.Steps = append(x.Steps, step)
	}
	_, read := v.Clusters[cluster]
	switch {
	case lost != "":
		x.Verdict = verdictf(codes.NodeAddressLost, "its address %s counts as another's", lost)
	case read && !now:
		x.Verdict = verdictf(codes.NodeNotAsOfNow, "known as of %s: the nodes of %s: %s", momentOf(at), cluster, v.unconfirmed(cluster, at))
	default:
		x.Verdict = verdictf(codes.NodeKnown, "known, and its addresses count as its own")
	}
	return x
}

func (v *Facts) nodeAddress(n *nodes.Node, a nodes.Address) api.Step {
	step := api.Step{Code: codes.NodeClaimCounts, Cluster: n.Cluster, Keys: []api.Key{}, Text: fmt.Sprintf("%s %s counts as its own", a.Type, a.IP)}
	own, winner := v.IPs.Node(a.IP, n.Cluster, n.Name)
	switch {
	case own == nil:
		step.Text = fmt.Sprintf("%s %s is not claimed", a.Type, a.IP)
	case winner.Cluster().Name != n.Cluster:
		step.Code = codes.NodeClaimLost
		step.Text = fmt.Sprintf("%s %s counts as that of %s: %s", a.Type, a.IP, winner.Cluster().Name, own.Weakness(winner))
	}
	return step
}

func momentOf(at *time.Time) string {
	if at == nil {
		return "no time"
	}
	return at.Format(time.RFC3339)
}

// Identity explains the known facts about a numeric identity.
func Identity(v *Facts, id uint32) api.Explanation {
	x := api.Explanation{Steps: []api.Step{}}
	if name, is := wire.ReservedIdentityName(id); is {
		x.Verdict = verdictf(codes.IdentityReserved, "%d is reserved: %s", id, name)
		return x
	}
	has := make(map[string]bool)
	var known, unconfirmed, refusing []string
	for one := range identities.ByID(v.Txn, v.Identities.Table(), id) {
		has[one.Cluster] = true
		known = append(known, one.Cluster)
	}
	for _, cluster := range v.names(known...) {
		at, now := v.asOf(cluster, wire.Identities)
		step := api.Step{Cluster: cluster, Keys: v.keys(cluster, wire.Identities, strconv.FormatUint(uint64(id), 10)), AsOf: at}
		switch refused := refusal(step.Keys); {
		case refused != "":
			step.Code, step.Text = codes.MappingRefused, "its mapping is refused: "+refused
		case has[cluster]:
			step.Code, step.Text = codes.MappingRead, "has published its labels"
		case !now:
			unconfirmed = append(unconfirmed, cluster)
			step.Code, step.Text = codes.MappingUnknown, "may have it: its identities: "+v.unconfirmed(cluster, at)
		case v.refusedOf(cluster, wire.Identities) != "":
			refusing = append(refusing, cluster)
			step.Code, step.Text = codes.MappingsRefused, "may have it: "+v.refusedOf(cluster, wire.Identities)
		default:
			continue // it does not have it, as nearly all do not
		}
		x.Steps = append(x.Steps, step)
	}
	unknown := unknownTexts("identities", unconfirmed, refusing)
	switch {
	case len(known) > 0:
		x.Verdict = verdictf(codes.IdentityKnown, "%d is known from %s", id, list(known))
	case unknown != "":
		x.Verdict = verdictf(codes.IdentityUnknown, "no cluster is known to have published %d, and %s", id, unknown)
	default:
		x.Verdict = verdictf(codes.IdentityNowhere, "no cluster has published %d", id)
	}
	return x
}
