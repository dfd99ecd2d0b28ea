package monitoring

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// processAlerts are about whether agents run.
func processAlerts() []Alert {
	up := "up{" + jobs + "}"
	return []Alert{
		{
			Name: "MeshAgentDown", Severity: Warning, Code: codes.AgentSilent, For: "5m",
			Expr:        "count " + byJob + " (max_over_time(" + up + "[10m]) == 0)",
			Summary:     "Prometheus gets no metrics from agents.",
			Description: "Prometheus has not reached " + ofAgents + " for 15 minutes.",
		},
		{
			Name: "MeshAgentsDown", Severity: Critical, Code: codes.AgentSilent, For: "5m",
			Expr:        "avg " + byJob + " (" + up + ") < 0.5",
			Summary:     "Prometheus gets no metrics from most agents.",
			Description: "Prometheus reaches {{ $value | humanizePercentage }} of the agents of {{ $labels.job }}.",
		},
		{
			Name: "MeshAgentAbsent", Severity: Critical, Code: codes.AgentSilent, For: "10m",
			Expr:        "absent(" + buildInfo + ")",
			Summary:     "There is no agent at all.",
			Description: "Prometheus has no metrics of any agent: none runs, or none is among its targets.",
		},
		{
			Name: "MeshAgentRestarting", Severity: Warning, Code: codes.AgentRestarts, For: "1m",
			Expr:        "max by (cluster, job, instance) (changes(process_start_time_seconds{" + jobs + "}[30m])) >= 3",
			Summary:     "The agent on {{ $labels.instance }} restarts repeatedly.",
			Description: "It was started {{ $value }} times within half an hour.",
		},
	}
}

// writerAlerts are about what agents, operators and mirrors write.
func writerAlerts() []Alert {
	const queue = "mesh_agent_kvstore_sync_queue_size"
	return []Alert{
		{
			Name: "MeshNoLeader", Severity: Critical, Code: codes.NobodyLeads, For: "5m",
			Expr:        "max by (cluster, job, name) (mesh_agent_leader_election_master_status) == 0",
			Summary:     "No process of the mode {{ $labels.name }} leads.",
			Description: "Processes of {{ $labels.job }} run, and none of them holds the lock in the own etcd. Operators without a leader publish nothing, mirrors without a leader copy nothing.",
		},
		{
			Name: "MeshWritesRefused", Severity: Warning, Code: codes.WritesRefused, For: "10m",
			Expr:        "sum by (cluster, job, scope) (" + queue + " > 0 and increase(mesh_agent_kvstore_sync_errors_total[30m]) > 0)", // tries are up to 17 minutes apart
			Summary:     "The own kvstore refuses writes of {{ $labels.scope }}.",
			Description: "{{ $value }} keys of {{ $labels.job }} wait, and the process retries each write.",
		},
		{
			Name: "MeshWritesBehind", Severity: Warning, Code: codes.WritesBehind, For: "10m",
			Expr:        "sum by (cluster, job, scope) (min_over_time(" + queue + "[5m]) > 0 and " + queue + " offset 5m > 0)",
			Summary:     "Keys to publish under {{ $labels.scope }} are not in the own kvstore.",
			Description: "{{ $value }} keys or more of {{ $labels.job }} have waited all the time for a write.",
		},
		{
			Name: "MeshMirrorStopped", Severity: Critical, Code: codes.OwnEtcdFull, For: "5m",
			Expr:        "max " + byJob + " (mesh_agent_mirror_stopped) == 1",
			Summary:     "The mirror copies nothing, since the own etcd is nearly full.",
			Description: "The mirror copies only deletions until there is room. All nodes of this cluster read the copies.",
		},
		{
			Name: "MeshMirrorFilling", Severity: Warning, Code: codes.OwnEtcdFull, For: "30m",
			Expr:        "max " + byJob + " (mesh_agent_mirror_own_etcd_size_bytes / mesh_agent_mirror_own_etcd_quota_bytes) > 0.7",
			Summary:     "The own etcd is filling up.",
			Description: "It uses {{ $value | humanizePercentage }} of its quota. The mirror stops copying at 80 % of space in use (--own-kvstore-stop-at), or at 95 % of file size.",
		},
		{
			Name: "MeshAllocationsFail", Severity: Warning, Code: codes.AllocationsFail, For: "10m",
			Expr: "sum " + byJob + ` (increase(mesh_agent_allocator_allocations_total{outcome="failed"}[5m])) > 0` +
				" or sum " + byJob + " (increase(mesh_agent_allocator_doublewrite_failures_total[5m])) > 0",
			Summary:     "Identities cannot be allocated.",
			Description: "Allocations of {{ $labels.job }} fail all the time: pods get no identity, or a migration of identities misses some.",
		},
		{
			Name: "MeshEndpointSlicesFailing", Severity: Warning, Code: codes.KubernetesRefuses, For: "10m",
			Expr:        "sum " + byJob + " (increase(mesh_agent_endpointslices_failed_total[5m])) > 0",
			Summary:     "EndpointSlices of remote backends cannot be written.",
			Description: "Requests of {{ $labels.job }} to the Kubernetes API fail all the time.",
		},
		{
			Name: "MeshServiceImportsFailing", Severity: Warning, Code: codes.KubernetesRefuses, For: "10m",
			Expr:        "sum " + byJob + " (increase(mesh_agent_mcs_failed_total[5m])) > 0",
			Summary:     "Objects of the MCS API cannot be written.",
			Description: "Requests of {{ $labels.job }} to the Kubernetes API fail all the time.",
		},
	}
}
