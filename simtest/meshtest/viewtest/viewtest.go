// Package viewtest has a view whose contents a test sets with lines of text, for tests of code that reads it.
package viewtest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/health"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

// Own is the name of the own cluster; all others are remote ones.
const Own = "own"

// Epoch is the present time in all worlds.
var Epoch = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

// World is a view of real tables with their findings, and a mesh whose state the test sets. One goroutine at a time may
// use it; any may use its view.
type World struct {
	View     *view.View
	Mesh     *fakemesh.Mesh
	Tables   *view.Tables
	Findings *findings.Watch
	Scopes   *health.Registry

	clusters map[string]*ipcache.Claimant
}

// Options are what a world may have of its own: the size of the view's ring ([view.Params]), and its clock. The zero
// value has the usual size, and always [Epoch].
type Options struct {
	Ring uint64
	Now  func() time.Time
}

// New returns an empty world, which is closed at the end of the test.
func New(tb testing.TB) *World {
	tb.Helper()
	return NewWith(tb, Options{})
}

// NewWith returns an empty world with these options, which is closed at the end of the test.
func NewWith(tb testing.TB, o Options) *World {
	tb.Helper()
	tables, err := view.NewTables(statedb.New(), ipcache.New(ipcache.Rules{}))
	if err != nil {
		tb.Fatal(err)
	}
	w := &World{
		Mesh: new(fakemesh.Mesh), Tables: tables, Scopes: health.New(), clusters: make(map[string]*ipcache.Claimant),
	}
	if o.Now == nil {
		o.Now = func() time.Time { return Epoch }
	}
	if w.View, err = view.New(view.Params{Tables: tables, Reader: w.Mesh, Scopes: w.Scopes, Ring: o.Ring, Now: o.Now}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.View.Close)
	if w.Findings, err = findings.NewWatch(tables.Findings, findings.Params{Tables: tables.Tables, Reader: w.Mesh}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.Findings.Close)
	return w
}

// ErrUnknown is returned for lines that Do does not support.
var ErrUnknown = errors.New("no such line")

// Do changes the world by a line:
//
//	cluster NAME [synced|cached|unread]  the remote cluster exists; its copy is current, or not, or was not read yet
//	ready, not-ready WHY                 whether everything that is waited for is visible
//	use NAME full|demoted|withdrawn      how the backends of a cluster are used
//	service CLUSTER NAMESPACE/NAME [affinity=A] [shared=false] [ports=PORTS] [addresses=A,...] [BACKEND...]
//	no-service CLUSTER NAMESPACE/NAME
//	export CLUSTER NAMESPACE/NAME        through the MCS API
//	no-export CLUSTER NAMESPACE/NAME
//	node CLUSTER NAME ADDRESS...         its addresses become the cluster's
//	address CLUSTER ADDRESS [NAMESPACE/POD [IDENTITY]]
//	no-address CLUSTER ADDRESS
//
// PORTS are NAME:NUMBER[/PROTOCOL], with commas. A BACKEND is ADDRESS[,KEY=VALUE...], with the keys host, zone, node,
// ports (with "+" instead of commas; without ports it has http:8080, with "none" none) and state, which is terminating
// or dead.
func (w *World) Do(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return ErrUnknown
	}
	args := append(words[1:], "", "")
	switch words[0] {
	case "cluster":
		w.cluster(args[0], args[1] == "cached", args[1] != "unread")
	case "ready":
		w.Mesh.Set(func(is *fakemesh.Facts) { is.NotReady = nil })
	case "not-ready":
		w.Mesh.Set(func(is *fakemesh.Facts) { is.NotReady = map[string]string{"mesh": strings.Join(words[1:], " ")} })
	case "use":
		w.Tables.Services.SetUse(args[0], map[string]services.BackendUse{"full": services.Full, "demoted": services.Demoted, "withdrawn": services.Withdrawn}[args[1]])
	case "service":
		return w.service(args[0], args[1], words[3:])
	case "no-service":
		namespace, name, _ := strings.Cut(args[1], "/")
		old := &services.Service{Cluster: args[0], Namespace: namespace, Name: name}
		w.Tables.Services.Apply([]store.Change[services.Service]{{Name: old.Key(), Old: old}})
	case "export", "no-export":
		namespace, name, _ := strings.Cut(args[1], "/")
		e := &services.Export{Cluster: args[0], Namespace: namespace, Name: name, Created: Epoch}
		change := store.Change[services.Export]{Name: args[1], New: e}
		if words[0] == "no-export" {
			change = store.Change[services.Export]{Name: args[1], Old: e}
		}
		w.Tables.Services.ApplyExports([]store.Change[services.Export]{change})
	case "node":
		return w.node(args[0], args[1], words[3:])
	case "address", "no-address":
		ip, err := netip.ParseAddr(args[1])
		if err != nil {
			return err
		}
		spec := ipcache.Spec{Prefix: netip.PrefixFrom(ip, ip.BitLen()), Kind: ipcache.KindHost, Source: wire.SourceClusterMesh, Namespace: "default", Name: "pod"}
		if len(words) > 3 {
			spec.Namespace, spec.Name, _ = strings.Cut(words[3], "/")
		}
		if len(words) > 4 {
			identity, err := strconv.ParseUint(words[4], 10, 32)
			if err != nil {
				return err
			}
			spec.Identity = uint32(identity)
		}
		spec.Cluster = w.number(args[0])
		op := ipcache.Op{New: ipcache.NewEntry(spec)}
		if words[0] == "no-address" {
			op = ipcache.Op{Old: op.New}
		}
		w.Tables.IPs.Apply([]ipcache.Op{op})
	default:
		return ErrUnknown
	}
	return nil
}

// Play runs Do for each line, and fails the test at the first error.
func (w *World) Play(tb testing.TB, lines string) {
	tb.Helper()
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := w.Do(line); err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
	}
}

func (w *World) cluster(name string, cached, read bool) {
	f := remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: Epoch.Add(-time.Second)}
	if cached {
		f = remotecluster.Freshness{State: remotecluster.FreshnessStale, AsOf: Epoch.Add(-time.Hour)}
	}
	state := remotecluster.Ready
	if !read {
		f, state = remotecluster.Freshness{State: remotecluster.FreshnessUnknown}, remotecluster.Connecting
	}
	c := remotecluster.Status{
		Name: name, ID: w.number(name).ID, State: state, Ready: read, Connected: read && !cached, Families: make(map[wire.Resource]remotecluster.FamilyStatus),
	}
	for _, r := range wire.Resources() {
		c.Families[r] = remotecluster.FamilyStatus{Synced: read, Count: 1, Exported: true, Freshness: f}
	}
	w.Mesh.Set(func(is *fakemesh.Facts) {
		is.Clusters = slices.DeleteFunc(slices.Clone(is.Clusters), func(o remotecluster.Status) bool { return o.Name == name })
		is.Clusters = append(is.Clusters, c)
	})
}

// number gives each cluster an ID.
func (w *World) number(name string) *ipcache.Claimant {
	c := w.clusters[name]
	if c == nil {
		c = &ipcache.Claimant{Name: name, ID: uint32(len(w.clusters) + 1)}
		w.clusters[name] = c
	}
	return c
}

func sourceOf(cluster string) wire.Source {
	if cluster == Own {
		return wire.SourceLocal
	}
	return wire.SourceClusterMesh
}

func (w *World) service(cluster, name string, words []string) error {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		return fmt.Errorf("%q is no NAMESPACE/NAME", name)
	}
	s := &services.Service{
		Cluster: cluster, ClusterID: w.number(cluster).ID, Source: sourceOf(cluster), Shared: true, IncludeExternal: true, Namespace: namespace, Name: short,
	}
	for _, word := range words {
		var err error
		key, value, isSetting := strings.Cut(word, "=")
		switch {
		case !isSetting || strings.Contains(key, ","):
			var b services.Backend
			b, err = parseBackend(word)
			s.Backends = append(s.Backends, b)
		case key == "affinity":
			s.Affinity = wire.Affinity(value)
		case key == "shared":
			s.Shared = value == "true"
		case key == "ports":
			s.Ports, err = parsePorts(value, ",")
		case key == "addresses":
			s.Addresses, err = parseAddresses(value)
		default:
			err = fmt.Errorf("%q is no setting of a service", word)
		}
		if err != nil {
			return err
		}
	}
	slices.SortFunc(s.Backends, func(a, b services.Backend) int { return a.IP.Compare(b.IP) })
	w.Apply(s)
	return nil
}

// Apply replaces services of clusters.
func (w *World) Apply(all ...*services.Service) {
	var changes []store.Change[services.Service]
	for _, s := range all {
		changes = append(changes, store.Change[services.Service]{Name: s.Key(), New: s})
	}
	w.Tables.Services.Apply(changes)
}

func parseBackend(word string) (b services.Backend, err error) {
	parts := strings.Split(word, ",")
	if b.IP, err = netip.ParseAddr(parts[0]); err != nil {
		return b, err
	}
	b.Ports = []services.Port{{Name: "http", Protocol: "TCP", Port: 8080}}
	for _, part := range parts[1:] {
		switch key, value, _ := strings.Cut(part, "="); key {
		case "host":
			b.Hostname = value
		case "zone":
			b.Zone = value
		case "node":
			b.Node = value
		case "ports":
			if b.Ports, err = parsePorts(value, "+"); err != nil {
				return b, err
			}
		case "state":
			b.Conditions = map[string]services.Conditions{
				"terminating": services.NotReady | services.IsTerminating, "dead": services.NotReady | services.NotServing,
			}[value]
		default:
			return b, fmt.Errorf("%q is nothing that a backend has", part)
		}
	}
	return b, nil
}

func parseAddresses(text string) (all []netip.Addr, err error) {
	for one := range strings.SplitSeq(text, ",") {
		ip, err := netip.ParseAddr(one)
		if err != nil {
			return nil, err
		}
		all = append(all, ip)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all, nil
}

func parsePorts(text, separator string) (all []services.Port, err error) {
	if text == "none" {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, separator) {
		one, protocol, given := strings.Cut(one, "/")
		if !given {
			protocol = "TCP"
		}
		name, number, _ := strings.Cut(one, ":")
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("port %q: %w", one, err)
		}
		all = append(all, services.Port{Name: name, Protocol: protocol, Port: uint16(n)})
	}
	slices.SortFunc(all, func(a, b services.Port) int { return int(a.Port) - int(b.Port) })
	return all, nil
}

func (w *World) node(cluster, name string, addresses []string) error {
	n := &nodes.Node{Cluster: cluster, ClusterID: w.number(cluster).ID, Name: name, Source: sourceOf(cluster)}
	for _, text := range addresses {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		n.Addresses = append(n.Addresses, nodes.Address{Type: wire.AddressInternalIP, IP: ip})
		w.claim(ipcache.Spec{Prefix: netip.PrefixFrom(ip, ip.BitLen()), Kind: ipcache.KindNode, Source: sourceOf(cluster), Identity: 6, Name: name}, cluster)
	}
	w.Tables.Nodes.Apply([]store.Change[nodes.Node]{{Name: n.Key(), New: n}})
	return nil
}

func (w *World) claim(s ipcache.Spec, cluster string) {
	s.Cluster = w.number(cluster)
	w.Tables.IPs.Apply([]ipcache.Op{{New: ipcache.NewEntry(s)}})
}
