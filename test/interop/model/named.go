package model

import "strconv"

// Named returns the objects by kind and by a name that no other object of the kind
// has, in all clusters.
func (o Objects) Named() map[Kind]map[string]any {
	return map[Kind]map[string]any{
		ClusterConfigs: named(o.ClusterConfigs, func(c ClusterConfig) string { return c.Cluster }),
		Nodes:          named(o.Nodes, func(n Node) string { return n.Cluster + "/" + n.Name }),
		Services:       named(o.Services, func(s Service) string { return s.Cluster + "/" + s.Namespace + "/" + s.Name }),
		EndpointSlices: named(o.EndpointSlices, func(s EndpointSlice) string { return s.Cluster + "/" + s.Namespace + "/" + s.Name }),
		ServiceExports: named(o.ServiceExports, func(e ServiceExport) string { return e.Cluster + "/" + e.Namespace + "/" + e.Name }),
		Identities:     named(o.Identities, func(i Identity) string { return i.Cluster + "/" + strconv.FormatUint(uint64(i.ID), 10) }),
		Addresses:      named(o.Addresses, Address.name),
	}
}

func named[T any](objects []T, name func(T) string) map[string]any {
	all := make(map[string]any, len(objects))
	for _, o := range objects {
		all[name(o)] = o
	}
	return all
}

// name tells an address from a prefix of full length, which are two objects.
func (a Address) name() string {
	if a.Host {
		return a.Cluster + "/" + a.Prefix.Addr().String()
	}
	return a.Cluster + "/" + a.Prefix.String()
}
