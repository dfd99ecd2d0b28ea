package model

import (
	"strconv"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Families are the key families whose values have a [Text].
func Families() []wire.Resource {
	return []wire.Resource{wire.Nodes, wire.Services, wire.EndpointSlices, wire.Identities, wire.IPs}
}

// Text returns what a mesh shows of the value of a key of a family; empty: nothing, since it is not acceptable.
func Text(r wire.Resource, name string, value []byte, e wire.Expect) string {
	switch r {
	case wire.Nodes:
		if n, err := wire.DecodeNode(name, value, e); err == nil {
			return nodeText(n)
		}
	case wire.Services:
		if s, err := wire.DecodeService(name, value, e); err == nil {
			return serviceText(s)
		}
	case wire.EndpointSlices:
		if s, err := wire.DecodeEndpointSlice(name, value, e); err == nil {
			return slicedText(endpoints(s))
		}
	case wire.Identities:
		if id, err := wire.DecodeIdentity(name, value, e); err == nil {
			return id.Labels.Encode()
		}
	case wire.IPs:
		if ip, err := wire.DecodeIP(name, value, e); err == nil {
			return says(ip.Identity, ip.EncryptionKey, ip.HostIP, ip.Namespace+"/"+ip.Pod, len(ip.Ports))
		}
	}
	return ""
}

// Seen returns the cluster, the family and the name of the key of an object that a mesh shows, and its text. It is not
// ok for an object without a key of its own.
func Seen(object any) (cluster string, r wire.Resource, name, text string, ok bool) {
	switch o := object.(type) {
	case *nodes.Node:
		return o.Cluster, wire.Nodes, o.Name, seenNode(o), true
	case *services.Service:
		return o.Cluster, wire.Services, o.FullName(), exportedText(o.Shared, o.ClusterID, o.Labels, seenBackends(o)), true
	case *services.Slice:
		return o.Cluster, wire.EndpointSlices, o.Namespace + "/" + o.Name, slicedText(seenEndpoints(o.Endpoints())), true
	case *identities.Identity:
		return o.Cluster, wire.Identities, strconv.FormatUint(uint64(o.ID), 10), o.Labels.Wire().Encode(), true
	case *ipcache.Entry:
		if o.Kind() != ipcache.KindHost {
			return "", "", "", "", false
		}
		text := says(o.Identity(), o.EncryptionKey(), o.HostIP(), o.Namespace()+"/"+o.Pod(), len(o.Ports()))
		return o.Cluster().Name, wire.IPs, o.Prefix().Addr().String(), text, true
	}
	return "", "", "", "", false
}
