package clustermesh

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Tables are the tables of one database that clusters are read into, with their writers.
type Tables struct {
	DB         *statedb.DB
	Nodes      *nodes.Nodes
	Services   *services.Services
	Identities *identities.Identities
	IPs        *ipcache.Cache
}

// NewTables returns empty tables in the database, together with the given cache of addresses.
func NewTables(db *statedb.DB, ips *ipcache.Cache) (*Tables, error) {
	t := &Tables{DB: db, IPs: ips}
	var errs [3]error
	t.Nodes, errs[0] = nodes.New(db)
	t.Services, errs[1] = services.New(db)
	t.Identities, errs[2] = identities.New(db)
	return t, errors.Join(errs[:]...)
}

// Shown returns the tables whose rows are shown, by the names of their resources. The cache shows the addresses.
func (t *Tables) Shown() map[string]tables.Shown {
	return map[string]tables.Shown{
		string(wire.Nodes):          tables.Show(t.Nodes.Table(), (*nodes.Node).Key, tables.Whole((*nodes.Node).Cost)),
		string(wire.Services):       tables.Show(t.Services.Global(), (*services.Global).FullName, (*services.Global).CostBeside),
		string(wire.ServiceExports): tables.Show(t.Services.ServiceExports(), (*services.Export).Key, tables.Whole((*services.Export).Cost)),
		string(wire.Identities):     tables.Show(t.Identities.Table(), (*identities.Identity).Key, tables.Whole((*identities.Identity).Cost)),
	}
}

// feed describes how one resource of a cluster is read into the view.
type feed struct {
	resource wire.Resource
	// family returns the family that reads the resource from a cluster.
	family func(refused func(), m *store.Metrics, log *slog.Logger) remotecluster.Family
	// check returns a function that judges one entry as the family does.
	check func(e wire.Expect) func(name string, value []byte) error
}

// feeds returns the feeds of all resources, in the order in which they are drained (wire.md §3.6).
// To add a resource, add its feed here, with two functions as for the others: one decodes its values
// into objects, one checks the claims of an object that the claim policy must grant.
func (v *Ingest) feeds() []feed {
	return []feed{
		feedOf(v, wire.Nodes, decodeNode, grantNode, v.ApplyNodes()),
		feedOf(v, wire.Services, decodeService, grantService, v.Services.Apply),
		feedOf(v, wire.EndpointSlices, v.decodeSlice, grantSlice, v.Services.ApplySlices),
		feedOf(v, wire.ServiceExports, decodeExport, grantExport, v.Services.ApplyExports),
		feedOf(v, wire.IPs, decodeIP, grantIP, v.applyIPs),
		feedOf(v, wire.Identities, decodeIdentity, grantIdentity, v.Identities.Apply),
	}
}

func feedOf[T any](v *Ingest, r wire.Resource, decode func(wire.Expect) store.Decode[T], check func(*claims.Grant, *T) error, apply func([]store.Change[T])) feed {
	decode = granted(v, decode, check)
	return feed{
		resource: r,
		family: func(refused func(), m *store.Metrics, log *slog.Logger) remotecluster.Family {
			return watch(r, decode, apply, refused, m, log)
		},
		check: func(e wire.Expect) func(string, []byte) error {
			judge := decode(e)
			return func(name string, value []byte) error {
				_, err := judge(name, value)
				return err
			}
		},
	}
}

// granted refuses entries that the policy file does not grant to a remote cluster. It uses the
// policy of the moment at which a session starts to decode: a change of the policy starts a new session.
func granted[T any](v *Ingest, decode func(wire.Expect) store.Decode[T], check func(*claims.Grant, *T) error) func(wire.Expect) store.Decode[T] {
	return func(e wire.Expect) store.Decode[T] {
		plain := decode(e)
		grant, admitted := v.Granted.Policy().Of(e.Cluster)
		if e.Own || admitted && grant == nil {
			return plain
		}
		return func(name string, value []byte) (*T, error) {
			object, err := plain(name, value)
			switch {
			case err != nil:
				return nil, err
			case !admitted:
				err = errors.New("the policy file has no entry for the cluster")
			default:
				err = check(grant, object)
			}
			if err != nil {
				return nil, &wire.RejectError{Reason: wire.ReasonPolicy, Err: err}
			}
			return object, nil
		}
	}
}

// sourceOf returns the source of entries: the own cluster's kvstore, or a remote cluster.
func sourceOf(e wire.Expect) wire.Source {
	if e.Own {
		return wire.SourceKVStore
	}
	return wire.SourceClusterMesh
}

// decoder returns a function that decodes values in the wire format into objects of the view.
func decoder[W, T any](e wire.Expect, read func(string, []byte, wire.Expect) (W, error), object func(W) *T) store.Decode[T] {
	return func(name string, value []byte) (*T, error) {
		w, err := read(name, value, e)
		if err != nil {
			return nil, err
		}
		return object(w), nil
	}
}

func decodeNode(e wire.Expect) store.Decode[nodes.Node] {
	return decoder(e, wire.DecodeNode, func(n *wire.Node) *nodes.Node { return nodes.FromWire(n, sourceOf(e)) })
}

func grantNode(g *claims.Grant, n *nodes.Node) error {
	for _, c := range n.Claims() {
		if err := cmp.Or(g.Address(c.Prefix), g.Host(c.HostIP)); err != nil {
			return err
		}
	}
	return nil
}

func decodeService(e wire.Expect) store.Decode[services.Service] {
	return decoder(e, wire.DecodeService, func(s *wire.Service) *services.Service { return services.FromWire(s, sourceOf(e)) })
}

func grantService(g *claims.Grant, s *services.Service) error {
	if err := g.Service(s.Namespace, s.Name); err != nil {
		return err
	}
	for _, b := range s.Backends {
		if err := g.Host(b.IP); err != nil {
			return err
		}
	}
	return nil
}

func (v *Ingest) decodeSlice(e wire.Expect) store.Decode[services.Slice] {
	return decoder(e, v.slices.Decode, func(s *wire.EndpointSlice) *services.Slice { return services.SliceFromWire(s, sourceOf(e)) })
}

func grantSlice(g *claims.Grant, s *services.Slice) error {
	if err := g.Namespace(s.Namespace); err != nil {
		return err
	}
	if s.Service != "" {
		if err := g.Service(s.Namespace, s.Service); err != nil {
			return err
		}
	}
	for a := range s.Addresses() {
		if err := g.Host(a); err != nil {
			return err
		}
	}
	return nil
}

func decodeExport(e wire.Expect) store.Decode[services.Export] {
	return decoder(e, wire.DecodeServiceExport, services.ExportFromWire)
}

func grantExport(g *claims.Grant, x *services.Export) error { return g.Service(x.Namespace, x.Name) }

func decodeIP(e wire.Expect) store.Decode[ipcache.Entry] {
	cluster, source := &ipcache.Claimant{Name: e.Cluster, ID: e.ClusterID}, sourceOf(e)
	return decoder(e, wire.DecodeIP, func(ip wire.IP) *ipcache.Entry {
		kind := ipcache.KindCIDR
		if ip.Host {
			kind = ipcache.KindHost
		}
		return ipcache.NewEntry(ipcache.Spec{
			Prefix: ip.Prefix, Cluster: cluster, Kind: kind, Source: source,
			Identity: ip.Identity, EncryptionKey: ip.EncryptionKey, HostIP: ip.HostIP,
			Namespace: ip.Namespace, Name: ip.Pod, Ports: ip.Ports,
		})
	})
}

func grantIP(g *claims.Grant, e *ipcache.Entry) error {
	return cmp.Or(g.Address(e.Prefix()), g.Host(e.HostIP()), g.Namespace(e.Namespace()), g.Identity(e.Identity()))
}

func decodeIdentity(e wire.Expect) store.Decode[identities.Identity] {
	return decoder(e, wire.DecodeIdentity, func(id wire.Identity) *identities.Identity { return identities.FromWire(id, e.Cluster, e.ClusterID) })
}

func grantIdentity(g *claims.Grant, i *identities.Identity) error {
	if err := g.Identity(i.ID); err != nil {
		return err
	}
	for l := range i.Labels.All() {
		if l.Key == wire.LabelNamespace {
			if err := g.Namespace(l.Value); err != nil {
				return err
			}
		}
	}
	return nil
}
