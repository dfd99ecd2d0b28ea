package budget

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Share is how much of one resource a cluster may have. 0 means no limit.
type Share struct {
	Keys  int   // keys, whether their values are accepted or refused
	Bytes int64 // bytes of these keys' names and values in etcd
}

// Budget is the limits of one cluster. In every field, 0 means no limit.
type Budget struct {
	// Resources has the share of each resource; a resource without one has no limit.
	Resources map[wire.Resource]Share
	// Value is how many bytes one value may have.
	Value int64
	// Events is how many events a second are taken, of all resources together. A cluster that sends more is read more
	// slowly: nothing is lost, and its freshness shows the delay.
	Events int
	// List is how long the listing of a resource may take.
	List time.Duration
}

// Share returns the share of a resource.
func (b Budget) Share(r wire.Resource) Share { return b.Resources[r] }

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Default is the budget of a cluster without its own settings. It is four times as large as a cluster with 5,000 nodes
// and 250,000 addresses needs.
func Default() Budget {
	shares := make(map[wire.Resource]Share)
	for _, r := range wire.Resources() {
		d := r.Describe()
		shares[r] = Share{d.Keys, d.Bytes}
	}
	return Budget{
		Resources: shares,
		Value:     1536 * kib, // the limit of etcd for one request
		Events:    10_000,
		List:      10 * time.Minute,
	}
}

// Budgets has the budgets of all clusters.
type Budgets struct {
	Budget                     // of clusters without their own budget
	Clusters map[string]Budget // complete ones, by cluster
}

// Defaults is the default budget for every cluster.
func Defaults() Budgets { return Budgets{Budget: Default()} }

// Of returns the budget of a cluster.
func (b Budgets) Of(cluster string) Budget {
	if own, has := b.Clusters[cluster]; has {
		return own
	}
	return b.Budget
}
