package budget

import (
	"sync"
	"sync/atomic"
)

// Memory limits the memory of the entries of all remote clusters together. The budgets of single clusters are generous;
// together they exceed the memory of a container. A third of the limit is divided equally, so that each cluster has a
// part that the others cannot use. The rest is for the clusters that need it first. The sizes of entries are estimates.
//
// Its methods may be called from any goroutine.
type Memory struct {
	bound    int64
	total    atomic.Int64
	clusters atomic.Int64 // with an account

	mu       sync.Mutex
	accounts map[string]*Account
}

// NewMemory returns a limit of so many bytes; 0 means no limit.
func NewMemory(bound int64) *Memory {
	return &Memory{bound: bound, accounts: make(map[string]*Account)}
}

// Account returns the account of a cluster, the same one each time; nil without a limit.
func (m *Memory) Account(cluster string) *Account {
	if m == nil || m.bound == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[cluster]
	if a == nil {
		a = &Account{of: m}
		m.accounts[cluster] = a
		m.clusters.Add(1)
	}
	return a
}

// Close ends the account of a cluster that is no longer in the mesh, after the last of its entries is removed.
func (m *Memory) Close(cluster string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.accounts[cluster]; a != nil {
		delete(m.accounts, cluster)
		m.clusters.Add(-1)
		m.total.Add(-a.used.Swap(0))
	}
}

// Account counts the memory of the entries of one cluster. The nil Account has no limit.
type Account struct {
	of   *Memory
	used atomic.Int64
}

// Used returns the counted bytes. They are estimates.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used.Load()
}

// Add counts bytes, or releases them if n is negative, and reports whether there was room for them; otherwise it counts
// nothing.
func (a *Account) Add(n int64) bool {
	if a == nil {
		return true
	}
	if !a.Fits(n) {
		return false
	}
	a.used.Add(n)
	a.of.total.Add(n)
	return true
}

// Fits reports whether there is room for n more bytes.
func (a *Account) Fits(n int64) bool {
	if a == nil || n <= 0 {
		return true
	}
	shared, own := a.of.bound/3*2, a.of.bound/3/max(a.of.clusters.Load(), 1)
	return a.of.total.Load()+n <= shared || a.used.Load()+n <= own
}
