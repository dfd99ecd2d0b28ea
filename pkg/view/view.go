package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/health"
	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Params are the inputs of a view.
type Params struct {
	*Tables // required

	// Reader describes the clusters that are read; nil: none are.
	Reader clustermesh.Reader
	// Scopes has the health reports of modules and tasks; nil: there are none.
	Scopes *health.Registry
	// Ring is how many changes are kept for streams; 0: RingSize. Old is how many bytes of old versions the ring may
	// keep alive, and Kept how many the readers may keep in addition; 0: OldBytes, and a share of the memory that Go
	// may use.
	Ring      uint64
	Old, Kept int64
	// Boundary counts and logs the failures of each kind; nil: failures are not counted or logged.
	Boundary *boundary.Boundary
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// View is the single source of all reads.
type View struct {
	Params
	kinds []kind // in the feed's order
	feed  *feed
	pages sync.Pool // of *[]feedEntry, lent to streams: empty, with room for pageSize

	byAddress  *services.AddressIndex
	byIdentity *ipcache.IdentityIndex
}

// New returns a view, which follows its tables until Close.
func New(p Params) (*View, error) {
	if t := p.Tables; t == nil || t.Tables == nil || t.Findings == nil {
		return nil, errors.New("view: Tables are missing")
	}
	v := &View{
		Params:    p,
		byAddress: services.NewAddressIndex(p.DB, p.Services.Global()), byIdentity: ipcache.NewIdentityIndex(p.IPs),
	}
	if v.Reader == nil {
		v.Reader = clustermesh.None{}
	}
	v.Scopes = cmp.Or(v.Scopes, health.New())
	v.Ring, v.Old, v.Kept = cmp.Or(v.Ring, RingSize), cmp.Or(v.Old, OldBytes), cmp.Or(v.Kept, keptBytes())
	if v.Now == nil {
		v.Now = time.Now
	}
	v.pages.New = func() any {
		page := make([]feedEntry, 0, pageSize)
		return &page
	}
	var err error
	if v.kinds, err = kindsOf(v); err != nil {
		return nil, err
	}
	followers := make([]follower, 0, len(v.kinds))
	for _, k := range v.kinds {
		f, failed := k.follow(v)
		if err = failed; err != nil {
			break
		}
		followers = append(followers, f)
	}
	v.feed = newFeed(v.DB, v.IPs, followers, v.Ring, v.Old)
	v.feed.kept.room = v.Kept
	v.feed.boundary = cmp.Or(v.Boundary, v.feed.boundary)
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// Run takes changes into the ring until ctx ends, whose error it returns.
func (v *View) Run(ctx context.Context) error { return v.feed.run(ctx) }

// Close stops following the tables: the ring takes in no more changes. Streams are not ended. It may be called twice.
func (v *View) Close() { v.feed.close() }

// Position takes in all changes up to now, and returns the position after them. Later reads return data of this
// position or newer.
func (v *View) Position() uint64 {
	position, _ := v.feed.take(v.Now(), true)
	return position
}

// ReadTxn takes in all changes up to now, and returns a transaction with the tables at that position. A stream has an event for
// each later change of an object of the transaction. This does not hold for a transaction of the database: the changes leave
// out an object that is created and deleted within a short time.
func (v *View) ReadTxn() statedb.ReadTxn {
	_, txn := v.feed.take(v.Now(), false)
	return txn
}

// Token names a position, for [View.Stream].
func (v *View) Token(position uint64) string { return v.feed.token(position) }

// Ready reports whether all clusters that must be read first are visible, and if not, the missing parts by cluster.
func (v *View) Ready() (bool, map[string]string) { return v.Reader.Ready() }

// readyInterval is how often WaitReady asks: readiness can also come with time alone.
const readyInterval = 50 * time.Millisecond

// WaitReady waits until Ready. When ctx ends before, the error contains the missing parts.
func (v *View) WaitReady(ctx context.Context) error {
	for {
		ready, reasons := v.Ready()
		if ready {
			return nil
		}
		if err := waiting.Sleep(ctx, readyInterval); err != nil {
			return fmt.Errorf("not ready: %s: %w", OneLine(reasons), err)
		}
	}
}

// MayDeny reports whether a client that acts on the answer may conclude that an object does not exist, and if not, why.
// It is true when the view is ready and has data of at least one cluster, if there are any. After the sync timeout the
// view is ready even when no cluster could be read since the start.
func (v *View) MayDeny() (ok bool, reasons map[string]string) {
	if ready, missing := v.Ready(); !ready {
		return false, missing
	}
	if all, unread := v.unread(); all > 0 && len(unread) == all {
		return false, unread
	}
	return true, nil
}

// Unread returns the clusters that could not be read since the start, with the reasons. An object that is not found may
// belong to one of them.
func (v *View) Unread() map[string]string {
	_, unread := v.unread()
	return unread
}

func (v *View) unread() (all int, reasons map[string]string) {
	clusters := v.Clusters()
	if own, has := v.OwnCluster(); has {
		clusters = append(clusters, own)
	}
	reasons = make(map[string]string)
	for _, c := range clusters {
		if len(clustermesh.Unsynced(c)) > 0 {
			reasons[c.Name] = "was not read since the start: " + c.Message
		}
	}
	return len(clusters), reasons
}

// OneLine puts reasons by cluster on one line, in the order of the clusters.
func OneLine(reasons map[string]string) string {
	var texts []string
	for _, cluster := range slices.SortedFunc(maps.Keys(reasons), natural.Compare) {
		texts = append(texts, cluster+": "+reasons[cluster])
	}
	return strings.Join(texts, "; ")
}

// Clusters describes the remote clusters at this moment, sorted by name.
func (v *View) Clusters() []remotecluster.Status { return v.Reader.Clusters() }

// OwnCluster describes the own cluster as it is read from its kvstore; false when it is not read.
func (v *View) OwnCluster() (remotecluster.Status, bool) { return v.Reader.Local() }

// ClustersByName returns the present status of every cluster that is read, the own one included.
func (v *View) ClustersByName() map[string]remotecluster.Status {
	all := v.Clusters()
	clusters := make(map[string]remotecluster.Status, len(all)+1)
	for _, c := range all {
		clusters[c.Name] = c
	}
	if own, has := v.OwnCluster(); has {
		clusters[own.Name] = own
	}
	return clusters
}

// Tables are the tables of one database that a view reads, with their writers.
type Tables struct {
	*clustermesh.Tables
	Findings *findings.Findings
}

// Shown returns the tables whose rows are shown, by the names of their kinds.
func (t *Tables) Shown() map[string]tables.Shown {
	shown := t.Tables.Shown()
	shown[string(Conflicts)] = tables.Show(t.Findings.Conflicts(), (*findings.Conflict).Key, tables.Whole((*findings.Conflict).Cost))
	shown[string(Events)] = tables.Show(t.Findings.Events(), (*findings.Event).Key, tables.Whole((*findings.Event).Cost))
	return shown
}

// NewTables returns empty tables in the database, to be used with this cache of addresses.
func NewTables(db *statedb.DB, ips *ipcache.Cache) (*Tables, error) {
	t, err := clustermesh.NewTables(db, ips)
	f, none := findings.New(db)
	return &Tables{t, f}, errors.Join(err, none)
}
