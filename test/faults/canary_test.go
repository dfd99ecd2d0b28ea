package faults

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// spot is the place of a cluster's objects, one for each resource, that show a number.
type spot struct {
	name string
	id   uint32
	addr netip.Addr
}

// numberedKinds are the resources with these objects.
func numberedKinds() []wire.Resource { return wire.Resources() }

// numbered is the object of the resource, with the number.
func (s spot) numbered(r wire.Resource, cluster string, id uint32, n int) change {
	text := strconv.Itoa(n)
	switch r {
	case wire.Nodes:
		o := wire.Node{Name: s.name, Cluster: cluster, ClusterID: id, BootID: text}
		return change{o.Key(), o.Encode()}
	case wire.Services:
		o := wire.Service{
			Cluster: cluster, ClusterID: id, Namespace: s.name, Name: s.name, Shared: true,
			Labels: map[string]string{"n": text},
		}
		return change{o.Key(), o.Encode()}
	case wire.EndpointSlices:
		o := wire.EndpointSlice{
			Cluster: cluster, ClusterID: id, Namespace: s.name, Name: s.name, AddressType: wire.AddressTypeIPv4,
			Labels:    map[string]string{wire.LabelServiceName: s.name},
			Endpoints: []wire.Endpoint{{Addresses: []string{s.addr.String()}, NodeName: &text}},
		}
		return change{o.Key(), o.Encode()}
	case wire.ServiceExports:
		o := wire.ServiceExport{
			Cluster: cluster, Namespace: s.name, Name: s.name, Type: wire.ServiceExportHeadless, SessionAffinity: wire.SessionAffinityNone,
			ExportCreationTimestamp: wire.ExportTime{Time: time.Unix(int64(n), 0)},
		}
		return change{o.Key(), o.Encode()}
	case wire.Identities:
		return change{wire.IdentityKey(s.id), fmt.Appendf(nil, "k8s:io.cilium.k8s.policy.cluster=%s;k8s:n=%s;", cluster, text)}
	case wire.IPs:
		o := wire.NewHostPair(s.addr)
		o.Identity, o.Pod = id<<16, text
		return change{o.Key(), o.Encode()}
	}
	panic("no numbers are shown by " + r)
}

// number is the number that the object of the resource shows in the view; 0 when there is none.
func (w *world) number(txn statedb.ReadTxn, r wire.Resource, cluster string, s spot) int {
	text := ""
	switch r {
	case wire.Nodes:
		if o, _, ok := w.view.Nodes.Table().Get(txn, nodes.ByName(cluster, s.name)); ok {
			text = o.BootID
		}
	case wire.Services:
		if o, _, ok := w.view.Services.Exported().Get(txn, services.ByKey(cluster, s.name, s.name)); ok {
			text = o.Labels["n"]
		}
	case wire.EndpointSlices:
		if o, _, ok := w.view.Services.Slices().Get(txn, services.SliceByKey(cluster, s.name, s.name)); ok {
			for b := range o.Endpoints() {
				text = b.Node
			}
		}
	case wire.ServiceExports:
		if o, _, ok := w.view.Services.ServiceExports().Get(txn, services.ExportByKey(cluster, s.name, s.name)); ok {
			text = strconv.FormatInt(o.Created.Unix(), 10)
		}
	case wire.Identities:
		if o, _, ok := w.view.Identities.Table().Get(txn, identities.ByKey(s.id, cluster)); ok {
			text = o.Map()["k8s:n"]
		}
	case wire.IPs:
		if o := w.view.IPs.LookupWinner(s.addr); o != nil && o.Cluster().Name == cluster {
			text = o.Pod()
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// The canaries: objects that are written all the time, each time all together and with a larger number. They are not
// part of the model.
const canaryName = "canary"

func canaryID(cluster uint32) uint32 { return cluster<<16 + 0xffff }

// canarySpot is the place of a cluster's canaries, by its index and its present ID.
func canarySpot(index int, id uint32) spot {
	return spot{canaryName, canaryID(id), netip.AddrFrom4([4]byte{10, 254, byte(index), 1})}
}

func isCanary(key string) bool {
	if id, err := strconv.Atoi(key[strings.LastIndexByte(key, '/')+1:]); err == nil && model.FamilyOf(key) == "identities" {
		return id&0xffff == 0xffff
	}
	return strings.Contains(key, "/"+canaryName) || strings.Contains(key, "/default/10.254.")
}

func canaries(index int, name string, id uint32, n int) []change {
	var all []change
	for _, r := range numberedKinds() {
		all = append(all, canarySpot(index, id).numbered(r, name, id, n))
	}
	return all
}

// canary is the number that a cluster's canary of the resource shows; 0 when there is none.
func (w *world) canary(c *cluster, r wire.Resource, id uint32) int {
	return w.number(w.db.ReadTxn(), r, c.name, canarySpot(c.index, id))
}
