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

// Ingest writes the tables of the domain packages, which are the merged view of all clusters,
// and the layout that numeric identities are read with.
type Ingest struct {
	*Tables
	// Described returns the status of the services and endpoint slices of the own cluster
	// that are read from its description. Nil: they are read from its kvstore like the
	// other resources. It must be set before the view is used.
	Described func(wire.Resource) store.Status
	// NodeDelay is how long after its deletion from the own cluster's kvstore a node is removed
	// from the view. The default is [NodeDelay]. It must be set before the view is used.
	NodeDelay time.Duration
	// Reads reports whether a resource is read, of the own cluster or of remote clusters; nil
	// means that all are read. It must be set before the view is used.
	Reads func(own bool, r wire.Resource) bool
	// Granted is what remote clusters may claim; nil means everything. It must be set before
	// the view is used.
	Granted *claims.Current

	layout wire.Layout
	slices *wire.SliceDecoder // shared by all clusters, so that its memory is bounded

	judging sync.Mutex
	judged  uint64 // revision of the own networks that all backends were last judged with; guarded by judging
}

// NewIngest returns the writer of these tables, for the own cluster's layout.
func NewIngest(local wire.ClusterInfo, t *Tables) (*Ingest, error) {
	layout, err := wire.NewLayout(local.MaxConnectedClusters)
	if err != nil {
		return nil, err
	}
	t.Services.JudgeBackends(backendJudge{t.IPs})
	return &Ingest{Tables: t, NodeDelay: NodeDelay, layout: layout, slices: wire.NewSliceDecoder(), judged: t.IPs.OwnRevision()}, nil
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
// changed. This is rare.
func (v *Ingest) judgeBackends() {
	v.judging.Lock()
	defer v.judging.Unlock()
	if now := v.IPs.OwnRevision(); now != v.judged {
		v.judged = now
		v.Services.JudgeAgain()
	}
}
