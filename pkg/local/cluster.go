package local

import (
	"errors"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Cluster is the description of our own cluster.
type Cluster struct {
	db *statedb.DB

	Services             *Objects[corev1.Service, *corev1.Service] // without those for another proxy
	EndpointSlices       *Objects[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]
	Nodes                *Objects[corev1.Node, *corev1.Node]
	Pods                 *Objects[corev1.Pod, *corev1.Pod]
	Namespaces           *Objects[corev1.Namespace, *corev1.Namespace]
	ServiceExports       *Objects[ServiceExport, *ServiceExport]
	ServiceImports       *Objects[ServiceImport, *ServiceImport]
	CiliumNodes          *Objects[CiliumNode, *CiliumNode]
	CiliumEndpoints      *Objects[CiliumEndpoint, *CiliumEndpoint] // see also Endpoint
	CiliumEndpointSlices *Objects[CiliumEndpointSlice, *CiliumEndpointSlice]
	CiliumIdentities     *Objects[CiliumIdentity, *CiliumIdentity]

	all     map[string]kind // by name
	reports reports
}

// New returns an empty description. It fails when the database has its tables already.
func New(db *statedb.DB) (*Cluster, error) {
	c := &Cluster{db: db, all: make(map[string]kind)}
	var errs [11]error
	c.Services, errs[0] = add[corev1.Service](c, "services")
	c.EndpointSlices, errs[1] = add[discoveryv1.EndpointSlice](c, "endpointslices")
	c.Nodes, errs[2] = add[corev1.Node](c, "nodes")
	c.Pods, errs[3] = add[corev1.Pod](c, "pods")
	c.Namespaces, errs[4] = add[corev1.Namespace](c, "namespaces")
	c.ServiceExports, errs[5] = add[ServiceExport](c, "serviceexports")
	c.CiliumNodes, errs[6] = add[CiliumNode](c, "ciliumnodes")
	c.CiliumEndpoints, errs[7] = add[CiliumEndpoint](c, "ciliumendpoints")
	c.CiliumIdentities, errs[8] = add[CiliumIdentity](c, "ciliumidentities")
	c.ServiceImports, errs[9] = add[ServiceImport](c, "serviceimports")
	c.CiliumEndpointSlices, errs[10] = add[CiliumEndpointSlice](c, "ciliumendpointslices", byMember, byNamespace)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	c.Services.keeps = isOurs
	return c, nil
}

// labelProxyName is the label with the name of a service proxy.
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// OfAnotherProxy reports whether the labels of a Service, or of a slice of one, name another service proxy. All
// proxies except the named one ignore this Service, as Kubernetes requires of kube-proxy, and as all programs of
// Cilium do.
func OfAnotherProxy(labels map[string]string) bool {
	_, another := labels[labelProxyName]
	return another
}

func isOurs(s *corev1.Service) bool { return !OfAnotherProxy(s.Labels) }

// kind is the objects of one kind, for any type.
type kind interface {
	Len() int
	Listed()
}

// Counts returns the number of objects of each kind that has any.
func (c *Cluster) Counts() map[string]int {
	counts := make(map[string]int)
	for name, objects := range c.all {
		if n := objects.Len(); n > 0 {
			counts[name] = n
		}
	}
	return counts
}

// Listed records that all objects that existed at the start are in the tables. It may be called again.
func (c *Cluster) Listed() {
	for _, objects := range c.all {
		objects.Listed()
	}
}

// ReadTxn returns a snapshot of all the tables.
func (c *Cluster) ReadTxn() statedb.ReadTxn { return c.db.ReadTxn() }

// HasCilium reports whether Cilium runs in the cluster, by the objects that it creates: its nodes, endpoints,
// endpoint slices or identities. Then Cilium numbers the identities, and no other program may: Cilium would not know
// the numbers.
func (c *Cluster) HasCilium(txn statedb.ReadTxn) bool {
	return c.CiliumNodes.table.NumObjects(txn) > 0 || c.CiliumEndpoints.table.NumObjects(txn) > 0 ||
		c.CiliumEndpointSlices.table.NumObjects(txn) > 0 || c.CiliumIdentities.table.NumObjects(txn) > 0
}
