// Package endpointslices writes EndpointSlices of remote backends for global Services of the own cluster, so that
// kube-proxy and other watchers of EndpointSlices reach them (mcs.md C).
//
// [Eligible] selects the Services by their annotations. [Plan] is the pure rule: from a Service, the global service of
// its name and the slices that this program wrote for it, it computes the slices to apply and the slices to delete.
// [Controller] follows the tables and carries the plans out, through internal/kube/kubewrite.
//
// # Written objects
//
// The backends are those of backends.Choose for no port and no particular client, without those of the own cluster,
// which has slices of its own for them. Their conditions carry out the choice. Backends that connections go to now are
// ready; those that terminate are serving and terminating; those of a group that comes later are serving alone, so that
// clients that prefer ready endpoints, like kube-proxy, leave them out until they are the best. There is a set of
// slices for each cluster, address family and set of ports, of at most [MaxEndpoints] each, and one without endpoints
// for a cluster that has the service and no backend.
//
// A plan is minimal. An endpoint stays in its slice, a new one goes to the first slice with room, a slice that has
// become empty takes other ports before another one is made, and a slice that is already correct is not written. Names
// are taken from what exists, so that another process, or the next leader, writes nothing where nothing has changed.
//
// # What keeps backends from vanishing
//
// Nothing happens before the view is ready and the own cluster's objects are listed. Of a cluster that is configured
// and was not read since the start, the slices stay exactly as they are. Backends that a disconnect policy withdraws
// are not chosen, and so not written. While not every configured cluster was read, at most half of all slices are
// deleted or emptied within a minute, because of what remote clusters say ([Controller.Run]).
//
// # What remotes can do
//
// They choose addresses, ports and host names of endpoints, and how many there are. Addresses of the own cluster and
// those for special use are refused, and counted ([Refused]). Parts that the API server would refuse are left out:
// invalid names, ports beyond [MaxPorts] of a backend. [MaxSlices] bounds the slices of one cluster, [MaxAllSlices]
// those of all.
//
// Only slices with both the label [LabelOwner] and the value [ManagedBy] of managed-by are considered: slices of other
// writers are not changed or deleted.
//
// Concurrency: [Controller.Run] owns every goroutine. Everything else is pure.
package endpointslices
