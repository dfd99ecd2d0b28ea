package monitoring

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// agentDashboard answers: is this process well, and what does it write?
func agentDashboard() Dashboard {
	const operations = "mesh_agent_kvstore_operations_duration_seconds"
	const byScope = "{{scope}} {{source_cluster}}"
	return newDashboard("agent", "Agents, operators, mirrors", "Are the processes well, and is what they write in the own etcd?", nil,
		row("Processes"),
		[]Panel{
			table("Versions", "The number of processes of each version.", 8, "count by (job, version, goversion) ("+of(buildInfo)+")", "processes", "job", "version", "goversion"),
			graph("Time since the start", "A drop to zero is a restart.", "s",
				query{"time() - " + of("process_start_time_seconds", jobs), "{{job}} {{instance}}"}).runbook(codes.AgentRestarts),
			graph("CPU", "Cores in use.", "short", query{"rate(" + of("process_cpu_seconds_total", jobs) + "[$__rate_interval])", "{{job}} {{instance}}"}),
			graph("Memory", "Resident memory.", "bytes", query{of("process_resident_memory_bytes", jobs), "{{job}} {{instance}}"}).runbook(codes.OverMemory),
			graph("Heap in use", "Go heap in use.", "bytes", query{of("go_memstats_heap_inuse_bytes", jobs), "{{job}} {{instance}}"}),
			graph("Goroutines", "A number that only grows is a leak.", "short", query{of("go_goroutines", jobs), "{{job}} {{instance}}"}),
		},
		row("Reading"),
		[]Panel{
			graph("Queued events", "Received, but not visible yet.", "short", query{maxBy("resource", of("mesh_agent_store_queued_events")), "{{resource}}"}),
			graph("Connections", "Connections to the etcds of clusters. Clusters with equal client files share a connection.", "short",
				query{sumBy("job", of("mesh_agent_clustermesh_sessions")), "{{job}}: open"},
				query{sumBy("job", of("mesh_agent_clustermesh_session_clusters")), "{{job}}: clusters that use them"}),
			graph("New connections", "Per second.", "cps", query{perSecond("job", "mesh_agent_clustermesh_sessions_opened_total"), "{{job}}"}),
			graph("Operations", "Operations on all etcds per second, by kind and outcome.", "ops", query{perSecond("kind, outcome", operations+"_count"), "{{kind}} {{outcome}}"}),
			graph("Operation time", "The 99th percentile.", "s", query{quantile("0.99", "kind", operations), "{{kind}}"}),
			graph("Probe interval", "The time between two reads that confirm the data of a cluster. It grows with the number of nodes.", "s",
				query{maxBy("target_cluster", of("mesh_agent_clustermesh_remote_cluster_probe_interval_seconds")), "{{target_cluster}}"}),
		},
		row("Writing to the own etcd"),
		[]Panel{
			graph("Leaders", "Leading processes, by mode. One of each is normal.", "short",
				query{sumBy("cluster, name", of("mesh_agent_leader_election_master_status")), "{{cluster}} {{name}}"}).runbook(codes.NobodyLeads),
			graph("Pending keys", "Keys that are not yet in the own etcd with the wanted value.", "short",
				query{sumBy("scope, source_cluster", of("mesh_agent_kvstore_sync_queue_size")), byScope}).runbook(codes.WritesBehind),
			graph("Refused writes", "Per second.", "cps",
				query{perSecond("scope, source_cluster", "mesh_agent_kvstore_sync_errors_total"), byScope}).runbook(codes.WritesRefused),
			graph("Initial write complete", "1 after all keys were written once.", "short",
				query{"min by (scope, source_cluster) (" + of("mesh_agent_kvstore_initial_sync_completed") + ")", byScope}),
			graph("Time from leadership to the initial write", "0 while another process leads.", "s",
				query{of("mesh_agent_operate_bootstrap_seconds"), "operate {{instance}}"}, query{of("mesh_agent_mirror_bootstrap_seconds"), "mirror {{instance}}"}),
			graph("Leases and locks", "Leases and locks that are kept alive.", "short",
				query{sumBy("kind", of("mesh_agent_kvstore_leases")), "leases of {{kind}}s"}, query{sumBy("", of("mesh_agent_kvstore_locks")), "locks"}),
		},
		row("The own etcd, as seen by the mirror"),
		[]Panel{
			graph("Size", "The size of the database file, the part in use, and the quota.", "bytes",
				query{maxBy("cluster", of("mesh_agent_mirror_own_etcd_size_bytes")), "{{cluster}} file"},
				query{maxBy("cluster", of("mesh_agent_mirror_own_etcd_in_use_bytes")), "{{cluster}} in use"},
				query{maxBy("cluster", of("mesh_agent_mirror_own_etcd_quota_bytes")), "{{cluster}} quota"}).runbook(codes.OwnEtcdFull),
			graph("Share of the quota", "The mirror stops copying at 80 % of space in use (--own-kvstore-stop-at), or at 95 % of file size.", "percentunit",
				query{maxBy("cluster", of("mesh_agent_mirror_own_etcd_size_bytes")+" / "+of("mesh_agent_mirror_own_etcd_quota_bytes")), "{{cluster}}"}).limit(0.8).runbook(codes.OwnEtcdFull),
			graph("Copying is stopped", "1 while the mirror copies only deletions.", "short", query{maxBy("cluster", of("mesh_agent_mirror_stopped")), "{{cluster}}"}).runbook(codes.OwnEtcdFull),
		},
		row("Identities of the own cluster"),
		[]Panel{
			graph("Allocations", "Per second, by outcome.", "cps", query{perSecond("outcome", "mesh_agent_allocator_allocations_total"), "{{outcome}}"}).runbook(codes.AllocationsFail),
			graph("Refused mappings", "Mappings that are invalid or outside the range, since the start.", "short",
				query{sumBy("", of("mesh_agent_allocator_refused_own_total")), "own"}, query{sumBy("", of("mesh_agent_allocator_refused_remote_total")), "remote"},
				query{sumBy("kind", of("mesh_agent_allocator_malformed_total")), "malformed {{kind}}"}),
			graph("Nodes of the own cluster", "The probe interval grows with this number. 0 means unknown.", "short",
				query{maxBy("cluster", of("mesh_agent_cluster_size")), "{{cluster}}"}),
		},
	)
}
