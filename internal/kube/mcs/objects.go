package mcs

// The kinds of the MCS API (mcs.md B, API surface).
const (
	Group             = "multicluster.x-k8s.io"
	Version           = "v1beta1" // which is written; v1alpha1 has the same schema
	KindServiceImport = "ServiceImport"
	KindServiceExport = "ServiceExport"
)

// The labels and annotations of the objects that are written (mcs.md B).
const (
	LabelServiceName   = "multicluster.kubernetes.io/service-name"
	LabelSourceCluster = "multicluster.kubernetes.io/source-cluster"
	LabelLocalSlice    = "service.cilium.io/local-endpointslice"
	// LabelWritten is on everything that is written here, with the value Written: nothing else is deleted.
	LabelWritten = "mesh-agent.io/written-for"
	Written      = "mcs-api"

	// AnnotationWinner is on an import with the name of the cluster whose export counts, so that it does
	// after a restart, too.
	AnnotationWinner = "mesh-agent.io/import-follows"

	AnnotationDerived   = "multicluster.kubernetes.io/derived-service"
	AnnotationFamilies  = "clustermesh.cilium.io/supported-ip-families"
	AnnotationSlices    = "service.cilium.io/global-sync-endpoint-slices"
	ManagedByLocalSlice = "endpointslice-local-mcsapi-controller.cilium.io" // who manages slices of [LocalSlices]
)

// Whether there are EndpointSlices of the backends of an imported service (mcs.md B).
const (
	SlicesPresent = "Present"
	SlicesAbsent  = "Absent"
)
