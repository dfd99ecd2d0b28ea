package kubernetes

import (
	"fmt"
	"log/slog"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// kinds returns a follower for each table that is to be filled. A role must allow these
// resources to be listed and watched, and nothing else: for an agent
// deploy/kubernetes.yaml, for an operator, with ServicesOnly, deploy/operate.yaml.
func kinds(o Options, into *local.Cluster, clients clients, h *health, log *slog.Logger) []*follower {
	pods := fields.Everything()
	if o.OwnPodsOnly {
		pods = fields.OneTermEqualSelector("spec.nodeName", o.NodeName)
	}
	var (
		all = fields.Everything()
		mcs = schema.GroupVersion{Group: "multicluster.x-k8s.io", Version: "v1alpha1"}
		// Objects that this program writes in this version are read in it: the older version has the same schema where
		// it is served at all.
		mcsBeta = schema.GroupVersion{Group: mcs.Group, Version: "v1beta1"}
		cilium  = schema.GroupVersion{Group: "cilium.io", Version: "v2"}
		slices  = schema.GroupVersion{Group: cilium.Group, Version: "v2alpha1"}
		with    = common{health: h, lookAgain: o.LookAgain, lookTwice: o.LookTwice, quiet: o.Quiet, log: log}
	)
	list := []*follower{
		newFollower(with, into.Services, typed(stripService), typedRequests(clients.coreV1, "services", all)),
		newFollower(with, into.EndpointSlices, typed(stripEndpointSlice), typedRequests(clients.discoveryV1, "endpointslices", all)),
		newFollower(with, into.Namespaces, typed(stripNamespace), typedRequests(clients.coreV1, "namespaces", all)),
		newFollower(with, into.ServiceExports, custom[local.ServiceExport], clients.custom(mcs, "serviceexports", "")),
		newFollower(with, into.CiliumIdentities, custom[local.CiliumIdentity], clients.custom(cilium, "ciliumidentities", without(o.Without))),
	}
	if o.Imports {
		list = append(list, newFollower(with, into.ServiceImports, custom[local.ServiceImport], clients.custom(mcsBeta, "serviceimports", "")))
	}
	if !o.ServicesOnly || o.CiliumToo {
		list = append(
			list,
			newFollower(with, into.CiliumNodes, custom[local.CiliumNode], clients.custom(cilium, "ciliumnodes", "")),
			newFollower(with, into.CiliumEndpoints, custom[local.CiliumEndpoint], clients.custom(cilium, "ciliumendpoints", "")),
			newFollower(with, into.CiliumEndpointSlices, custom[local.CiliumEndpointSlice], clients.custom(slices, "ciliumendpointslices", "")),
		)
	}
	if o.ServicesOnly {
		return list
	}
	return append(
		list,
		newFollower(with, into.Nodes, typed(stripNode), typedRequests(clients.coreV1, "nodes", all)),
		newFollower(with, into.Pods, typed(stripPod), typedRequests(clients.coreV1, "pods", pods)),
	)
}

// without selects objects that do not have the label "key=value".
func without(label string) string {
	key, value, _ := strings.Cut(label, "=")
	if key == "" {
		return ""
	}
	return key + "!=" + value
}

// typed reads an object of a kind that Kubernetes itself has. It changes the object: no other code has it yet.
func typed[T any, P local.Object[T]](strip func(P)) func(any) (P, error) {
	return func(from any) (P, error) {
		o, ok := from.(P)
		if !ok {
			return nil, fmt.Errorf("%T instead of %T", from, o)
		}
		stripMeta(o)
		strip(o)
		return o, nil
	}
}

// custom reads an object of a kind with a definition. An unknown field is no
// error, one of another type is.
func custom[T any, P local.Object[T]](from any) (P, error) {
	if done, ok := from.(P); ok {
		return done, nil
	}
	raw, ok := from.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T instead of %T", from, raw)
	}
	o := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, o); err != nil {
		return nil, err
	}
	stripMeta(o)
	return o, nil
}
