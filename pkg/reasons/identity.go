package reasons

import (
	"strconv"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Identity explains what is known of a numeric identity.
func Identity(v *View, id uint32) Explanation {
	x := Explanation{Steps: []Step{}}
	if name, is := wire.ReservedIdentityName(id); is {
		x.Verdict = verdictf(codes.IdentityReserved, "%d is reserved: %s", id, name)
		return x
	}
	has := make(map[string]bool)
	var known, unconfirmed, refusing []string
	for one := range allocator.ByID(v.Txn, v.Identities.Table(), id) {
		has[one.Cluster] = true
		known = append(known, one.Cluster)
	}
	for _, cluster := range v.names(known...) {
		at, now := v.asOf(cluster, wire.Identities)
		step := Step{Cluster: cluster, Keys: v.keys(cluster, wire.Identities, strconv.FormatUint(uint64(id), 10)), AsOf: at}
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
		x.Verdict = verdictf(codes.IdentityUnknown, "nobody is known to have published %d, and %s", id, unknown)
	default:
		x.Verdict = verdictf(codes.IdentityNowhere, "nobody has published %d", id)
	}
	return x
}
