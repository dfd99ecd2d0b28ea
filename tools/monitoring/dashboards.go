package monitoring

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// Metrics that several panels use.
const (
	age      = "mesh_agent_clustermesh_remote_cluster_age_seconds"
	entries  = "mesh_agent_clustermesh_remote_cluster_entries"
	rejected = "mesh_agent_clustermesh_remote_cluster_rejected_entries"
	decided  = "mesh_agent_clustermesh_remote_cluster_policy_state"
	spread   = "mesh_agent_store_event_propagation_seconds"
)

// policyWords are what the disconnect policy says.
func policyWords() map[string]string {
	return map[string]string{"0": "keep", "1": "demote", "2": "withdraw"}
}

// Dashboards are all of them, by the names of their files.
func Dashboards() map[string]Dashboard {
	return map[string]Dashboard{"mesh": meshDashboard(), "cluster": clusterDashboard(), "agent": agentDashboard(), "servers": serversDashboard()}
}

// meshDashboard answers: is something wrong, and with which cluster?
func meshDashboard() Dashboard {
	return newDashboard("mesh", "All clusters", "Is something wrong in the mesh, and with which cluster? Begin here.", nil,
		[]Panel{
			stat("Firing alerts", "Alerts of mesh-agent's rules.", "short", `count(ALERTS{alertname=~"Mesh.*",alertstate="firing"}) or vector(0)`, red(1)),
			stat("Agents", "Agents, operators and mirrors with metrics.", "short", "count("+of(buildInfo)+")").runbook(codes.AgentSilent),
			stat("Agents without metrics", "Targets of Prometheus that do not answer.", "short",
				`count(up{cluster=~"$cluster",job=~".*mesh-agent.*"} == 0) or vector(0)`, orange(1)).runbook(codes.AgentSilent),
			stat("Clusters not ready", "Not ready for at least one agent.", "short",
				"count(min by (target_cluster) ("+of(readiness)+") == 0) or vector(0)", orange(1)).runbook(codes.ConnectionLost),
			stat("Conflicts", "Contradictions between clusters. 'mesh-agent get conflicts' lists them.", "short",
				"sum("+maxBy("kind", of("mesh_agent_conflicts"))+")", orange(1)).runbook(codes.ClusterIDConflict, codes.AddressConflict),
			stat("Refused entries", "Keys of clusters whose present value is not used.", "short",
				"sum("+maxBy("target_cluster, resource, reason", of(rejected))+") or vector(0)", orange(1)).runbook(codes.EntriesRejected, codes.OverBudget),
		},
		[]Panel{
			clusterLinks(table("Clusters", "The state of each cluster, the code of the reason, and the number of agents that report it. MESH-1200 means that the cluster is well.", 12,
				"count by (target_cluster, state, code) ("+of(state)+")", "agents", "target_cluster", "state", "code")),
			graph("Agents for which a cluster is ready", "The share of agents that are connected to it and watch all resources.", "percentunit",
				query{"avg by (target_cluster) (" + of(readiness) + ")", "{{target_cluster}}"}).wide(12).runbook(codes.ConnectionLost, codes.NotConfirmed),
		},
		[]Panel{
			graph("Age of the data", "The time since the data was last known to equal the etcd, for the worst resource and agent. About 10 seconds are normal.", "s",
				query{maxBy("target_cluster", of(age)), "{{target_cluster}}"}).limit(60).runbook(codes.NotConfirmed),
			graph("Service backends in doubt", "The decision of the disconnect policy: 0 keep, 1 demote, 2 withdraw.", "short",
				query{maxBy("target_cluster", of(decided)), "{{target_cluster}}"}).means(policyWords()).runbook(codes.ClusterDemoted, codes.ClusterWithdrawn, codes.PolicyHeld),
			graph("Conflicts by kind", "'mesh-agent get conflicts' lists them.", "short",
				query{maxBy("kind", of("mesh_agent_conflicts")), "{{kind}}"}),
		},
		[]Panel{
			graph("Entries", "Entries of all clusters, by resource.", "short",
				query{"sum by (resource) (" + maxBy("target_cluster, resource", of(entries)) + ")", "{{resource}}"}),
			graph("Time until an event is visible", "The 99th percentile of the time from the receipt of an event until it is visible.", "s",
				query{quantile("0.99", "resource", spread), "{{resource}}"}),
			graph("Identities in use", "The share of the cluster's identity range.", "percentunit",
				query{maxBy("target_cluster", of(entries, `resource="identities"`)+" / on (cluster, job, instance) group_left () "+of("mesh_agent_identity_range_size")), "{{target_cluster}}"}).
				limit(0.85).runbook(codes.IdentitiesRunOut),
		},
	)
}

// clusterLinks lead from a row of a table to the dashboard of the cluster.
func clusterLinks(p Panel) Panel {
	p.FieldConfig.Defaults.Links = []link{{
		Title: "This cluster", URL: "/d/mesh-agent-cluster?var-datasource=${datasource}&var-target_cluster=${__data.fields.target_cluster}&${__url_time_range}",
	}}
	return p
}

// clusterDashboard shows the problems of one remote cluster, and the agents that have them.
func clusterDashboard() Dashboard {
	const target = `target_cluster=~"$target_cluster"`
	one := func(metric string, more ...string) string { return of(metric, append(more, target)...) }
	return newDashboard("cluster", "One cluster", "What is wrong with a remote cluster, and for which agents?",
		[]Variable{variable("target_cluster", "Remote cluster", "label_values("+state+`{cluster=~"$cluster"}, target_cluster)`)},
		[]Panel{
			stat("Agents for which it is ready", "The share of the agents that read the cluster.", "percentunit", "avg("+one(readiness)+")").
				reversed(0.5, 1).runbook(codes.ConnectionLost),
			stat("Age of the data", "For the worst resource and agent.", "s", "max("+one(age)+")", orange(60), red(300)).runbook(codes.NotConfirmed),
			stat("Age of the heartbeat", "The cluster writes it once a minute.", "s", "max("+one("mesh_agent_clustermesh_remote_cluster_heartbeat_age_seconds")+")", orange(150)).
				runbook(codes.NoHeartbeat),
			stat("Service backends", "The decision of the disconnect policy, for the worst agent.", "short", "max("+one(decided)+")", orange(1), red(2)).
				means(policyWords()).runbook(codes.ClusterDemoted, codes.ClusterWithdrawn),
			stat("Refused entries", "Keys whose present value is not used.", "short", "sum("+maxBy("target_cluster, resource, reason", one(rejected))+") or vector(0)", orange(1)).
				runbook(codes.EntriesRejected, codes.OverBudget),
			stat("Internal errors", "Internal errors of agents with this cluster.", "short",
				"sum("+one("mesh_agent_clustermesh_remote_cluster_internal_errors_total")+")", red(1)).runbook(codes.InternalError),
		},
		[]Panel{
			table("State by agent", "The state of the cluster, and the code of the reason, for each agent. 'mesh-agent describe cluster NAME' on that node explains it.", 12,
				one(state), "", "target_cluster", "state", "code", "cluster", "job", "instance"),
			table("Refused entries", "By resource and reason. An empty table is good.", 12,
				maxBy("target_cluster, resource, reason", one(rejected))+" or label_replace(vector(0), \"reason\", \"none\", \"\", \"\")", "entries", "target_cluster", "resource", "reason").
				runbook(codes.EntriesRejected, codes.OverBudget),
		},
		[]Panel{
			graph("Age by resource", "The time since the resource was last known to equal the etcd of the cluster.", "s", query{maxBy("resource", one(age)), "{{resource}}"}).limit(60),
			graph("Age by agent", "The ten agents with the oldest data.", "s", query{"topk(10, " + maxBy("instance", one(age)) + ")", "{{instance}}"}).limit(60),
			graph("Failed attempts and lost sessions", "All agents, per second.", "cps",
				query{sumBy("target_cluster", "clamp_min(deriv("+one("mesh_agent_clustermesh_remote_cluster_failures")+"[$__rate_interval]), 0)"), "{{target_cluster}}"}).
				runbook(codes.ClusterDisconnected),
		},
		[]Panel{
			graph("Entries", "Accepted entries, by resource.", "short", query{maxBy("resource", one(entries)), "{{resource}}"}),
			graph("Time until an event is visible", "The 99th percentile of recent events, for the slowest agent.", "s",
				query{maxBy("resource", one("mesh_agent_clustermesh_remote_cluster_lag_seconds", `quantile="0.99"`)), "{{resource}}"}),
			graph("First complete copy", "The time from the start of an agent, for the slowest agent.", "s",
				query{maxBy("resource", one("mesh_agent_clustermesh_remote_cluster_sync_duration_seconds")), "{{resource}}"}),
		},
	)
}

// reversed is red below the first value, orange below the second one, and green from there on.
func (p Panel) reversed(low, high float64) Panel {
	p.FieldConfig.Defaults.Thresholds.Steps = []step{{Color: "red"}, orange(low), {"green", &high}}
	return p
}
