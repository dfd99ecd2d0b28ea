package budget

import (
	"sync"
	"sync/atomic"
)

// Memory bounds the memory of the entries of all remote clusters together. Budgets bound each cluster generously;
// together they exceed the memory of a container. A third of the bound is divided equally, so that each cluster has a
// part that the others cannot take. The rest goes to the clusters that need it first. The sizes of entries are
// estimates.
//
// Its methods may be called from any goroutine.
type Memory struct {
	bound    int64
	total    atomic.Int64
	clusters atomic.Int64 // with an account

	mu       sync.Mutex
	accounts map[string]*Account
}

// NewMemory bounds it by so many bytes; 0 is no bound.
func NewMemory(bound int64) *Memory {
	return &Memory{bound: bound, accounts: make(map[string]*Account)}
}

// Account is that of a cluster: the same one each time; nil where there is no bound.
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

// Account is what the entries of one cluster take. The nil Account has no bound.
type Account struct {
	of   *Memory
	used atomic.Int64
}

// Used is how many bytes that is, as estimated.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used.Load()
}

// Add counts bytes, or gives some back, and reports whether there was room for them;
// otherwise it has counted nothing.
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

// Fits reports whether there is room for so many bytes more.
func (a *Account) Fits(n int64) bool {
	if a == nil || n <= 0 {
		return true
	}
	shared, own := a.of.bound/3*2, a.of.bound/3/max(a.of.clusters.Load(), 1)
	return a.of.total.Load()+n <= shared || a.used.Load()+n <= own
}
