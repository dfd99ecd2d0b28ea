package clustermesh

import (
	"fmt"
	"iter"
	"net/netip"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// View is the merged view of all clusters: the tables of the domain packages,
// and the layout that numeric identities are read with.
type View struct {
	*Tables
	// Described says how well services and endpoint slices of the own cluster are
	// known from its description. Nil: they come from its kvstore like the rest. It
	// is set before the view is used.
	Described func(wire.Resource) store.Status
	// NodeDelay is when a node that has vanished from the own cluster's kvstore is
	// taken out of the view: [NodeDelay], until it is set, before the view is used.
	NodeDelay time.Duration
	// Reads says which resources are read of a cluster, the own one or a remote; nil: all. It is
	// set before the view is used.
	Reads func(own bool, r wire.Resource) bool
	// Granted is what remote clusters may claim; nil is everything. It is set before
	// the view is used.
	Granted *claims.Current

	layout wire.Layout
	slices *wire.SliceDecoder // of all clusters, so that its memory is bounded

	judging sync.Mutex
	judged  uint64 // revision of the own networks by which all backends were judged; guarded by judging
}

// NewView returns a view with these tables, for the own cluster's layout.
func NewView(local wire.ClusterInfo, t *Tables) (*View, error) {
	layout, err := wire.NewLayout(local.MaxConnectedClusters)
	if err != nil {
		return nil, err
	}
	t.Services.JudgeBackends(backendJudge{t.IPs})
	return &View{Tables: t, NodeDelay: NodeDelay, layout: layout, slices: wire.NewSliceDecoder(), judged: t.IPs.OwnRevision()}, nil
}

// backendJudge judges service backends by the rules for claims on addresses.
type backendJudge struct{ ips *ipcache.Cache }

// Breaches implements [services.Judge].
func (j backendJudge) Breaches(addrs iter.Seq[netip.Addr], visit func(netip.Addr, uint8, fmt.Stringer)) {
	j.ips.Breaches(addrs, func(a netip.Addr, b ipcache.Breach) { visit(a, uint8(b.Rule), b) })
}

// Enforces implements [services.Judge].
func (j backendJudge) Enforces() bool { return j.ips.Enforces() }

// judgeBackends judges the backends of all services again when the own networks have
// changed, which they seldom do.
func (v *View) judgeBackends() {
	v.judging.Lock()
	defer v.judging.Unlock()
	if now := v.IPs.OwnRevision(); now != v.judged {
		v.judged = now
		v.Services.JudgeAgain()
	}
}
