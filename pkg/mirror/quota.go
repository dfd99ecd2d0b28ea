package mirror

import (
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

const mib = 1 << 20

// DefaultBudget is what a remote cluster without settings of its own may cost. A copy
// lies in our own etcd, whose quota is 2 GiB if nobody has raised it, beside old
// revisions and all other copies: bytes are fewer than those of an agent. The nodes and
// addresses of a cluster with 5,000 and 250,000 of them fit four times, as with an
// agent; what all clusters have together is bounded by [Room].
func DefaultBudget() budget.Budget {
	b := budget.Default()
	for r, share := range b.Resources {
		share.Bytes = r.Describe().CopyBytes
		b.Resources[r] = share
	}
	return b
}

// DefaultBudgets is the default budget for every cluster.
func DefaultBudgets() budget.Budgets { return budget.Budgets{Budget: DefaultBudget()} }

// DefaultRate is how fast the copy of one remote cluster may be written: a large one
// at once, and then more than a large one changes. What a remote writes again and
// again takes space as well, until our own etcd is compacted, every 5 minutes or so.
func DefaultRate() syncstore.Rate {
	return syncstore.Rate{Writes: 1000, WritesAtOnce: 500_000, Bytes: 1 * mib, BytesAtOnce: 256 * mib}
}
