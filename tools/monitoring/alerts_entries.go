package monitoring

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// entryAlerts are about what clusters publish, and what of it is not taken.
func entryAlerts() []Alert {
	const rejected = "max by (cluster, job, target_cluster, resource, reason) (mesh_agent_clustermesh_remote_cluster_rejected_entries"
	const entries = "mesh_agent_clustermesh_remote_cluster_entries"
	return []Alert{
		{
			Name: "MeshEntriesRefused", Severity: Warning, Code: codes.EntriesRejected, For: "15m",
			Expr:        fmt.Sprintf(`%s{reason!="%s"}) > 0`, rejected, wire.ReasonBudget),
			Summary:     "Entries of cluster " + remote + " are refused.",
			Description: "{{ $value }} of its {{ $labels.resource }} have no effect: {{ $labels.reason }}.",
		},
		{
			Name: "MeshBudgetExceeded", Severity: Critical, Code: codes.OverBudget, For: "10m",
			Expr:        fmt.Sprintf(`%s{reason="%s"}) > 0`, rejected, wire.ReasonBudget),
			Summary:     "Cluster " + remote + " has more {{ $labels.resource }} than its budget allows.",
			Description: "{{ $value }} of them have no effect.",
		},
		{
			Name: "MeshMemoryExceeded", Severity: Critical, Code: codes.OverMemory, For: "5m",
			Expr:        lasting(codes.OverMemory),
			Summary:     "The entries of all remote clusters have reached the memory limit.",
			Description: ofAgents + " refuse some entries of cluster " + remote + " for that.",
		},
		{
			Name: "MeshEventsPaced", Severity: Warning, Code: codes.EventsPaced, For: "10m",
			Expr:        lasting(codes.EventsPaced),
			Summary:     "Cluster " + remote + " changes faster than its budget allows.",
			Description: ofAgents + " read its events with a delay, so its data is older than usual.",
		},
		{
			Name: "MeshIdentitiesRunOut", Severity: Warning, Code: codes.IdentitiesRunOut, For: "30m",
			Expr: fmt.Sprintf("max %s (%s{resource=\"%s\"} / on (cluster, job, instance) group_left () mesh_agent_identity_range_size) > 0.85",
				byRemote, entries, wire.Identities),
			Summary:     "The identities of cluster " + remote + " run out.",
			Description: "{{ $value | humanizePercentage }} of the identities in its range are in use. When none is free, a new workload there gets no identity.",
		},
		{
			Name: "MeshFilesIgnored", Severity: Warning, Code: codes.FileIgnored, For: "10m",
			Expr:        "max " + byJob + " (mesh_agent_clustermesh_ignored_files) > 0",
			Summary:     "Files of the mesh directory cannot be used.",
			Description: "An agent of {{ $labels.job }} ignores {{ $value }} of them: no cluster is connected through them.",
		},
		{
			Name: "MeshDirectoryUnreadable", Severity: Warning, Code: codes.DirectoryUnreadable, For: "10m",
			Expr:        "sum " + byJob + " (mesh_agent_clustermesh_directory_unreadable) > 0",
			Summary:     "The mesh directory cannot be read.",
			Description: ofAgents + " cannot read it: they add and remove no clusters.",
		},
		{
			Name: "MeshReadyWithoutClusters", Severity: Warning, Code: codes.ReadyWithout, For: "15m",
			Expr:        "max " + byJob + " (mesh_agent_clustermesh_ready_without_clusters) > 0",
			Summary:     "An agent became ready without some clusters.",
			Description: "They were not synced in time after its start, and {{ $value }} still are not.",
		},
	}
}

// conflictAlerts are about what clusters disagree on.
func conflictAlerts() []Alert {
	conflict := func(name, kinds string, s Severity, code codes.Code, summary string) Alert {
		return Alert{
			Name: name, Severity: s, Code: code, For: "10m",
			Expr:        fmt.Sprintf(`max by (cluster, job, kind) (mesh_agent_conflicts{kind=~"%s"}) > 0`, kinds),
			Summary:     summary,
			Description: "{{ $value }} conflicts of the kind {{ $labels.kind }}: 'mesh-agent get conflicts' lists them.",
		}
	}
	return []Alert{
		conflict("MeshClusterIDConflict", "cluster-id", Critical, codes.ClusterIDConflict, "Several clusters have one cluster ID."),
		conflict("MeshClusterNameConflict", "cluster-name", Critical, codes.ClusterNameConflict, "Several clusters answer to one name."),
		conflict("MeshAddressConflict", "ip|pod-cidr|node-ip", Warning, codes.AddressConflict, "Several clusters claim the same addresses."),
		conflict("MeshClaimConflict", "claim", Warning, codes.OwnNetworkClaimed, "A cluster claims what it may not claim."),
		conflict("MeshIdentityConflict", "identity", Warning, codes.IdentityTwice, "Identities of a cluster are ambiguous or out of its range."),
		conflict("MeshServiceConflict", "service-port|service-affinity", Warning, codes.ServicePortConflict, "Clusters disagree on a service."),
	}
}
