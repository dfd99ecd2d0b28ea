package monitoring

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// serversDashboard answers: do those who use the mesh get answers?
func serversDashboard() Dashboard {
	return newDashboard("servers", "DNS, xDS, EndpointSlices, MCS API, discovery", "Do those who use the mesh get what they ask for?", nil,
		row("DNS"),
		[]Panel{
			graph("Questions", "Per second, by the code of the answer. SERVFAIL is that not every cluster is known.", "reqps",
				query{perSecond("rcode", "mesh_agent_dns_queries_total"), "{{rcode}}"}).runbook(codes.NotReadyToServe),
			graph("Time of answers", "99 % took less.", "s", query{quantile("0.99", "", "mesh_agent_dns_answer_seconds"), "99 %"}),
			graph("Refused", "Questions and connections per second that were too many at once.", "cps",
				query{perSecond("limit", "mesh_agent_dns_refused_total"), "{{limit}}"}).runbook(codes.ClientsRefused),
		},
		row("xDS"),
		[]Panel{
			graph("Streams", "Clients that are connected.", "short", query{sumBy("variant", of("mesh_agent_xds_streams")), "{{variant}}"}),
			graph("Names", "That clients follow, on the agent with most of them.", "short", query{maxBy("type", of("mesh_agent_xds_names")), "{{type}}"}),
			graph("Requests", "Per second, by type. Each answer is confirmed by one.", "reqps", query{perSecond("type", "mesh_agent_xds_requests_total"), "{{type}}"}),
			graph("Answers and updates", "That were sent, per second.", "cps", query{perSecond("type", "mesh_agent_xds_responses_total"), "{{type}}"}),
			graph("Rejected by clients", "Per second. They go on with what they had.", "cps",
				query{perSecond("type", "mesh_agent_xds_rejected_total"), "{{type}}"}).runbook(codes.UpdatesRejected),
			graph("Refused", "Connections, streams and requests per second that were not taken, by reason.", "cps",
				query{perSecond("reason", "mesh_agent_xds_refused_total"), "{{reason}}"}).runbook(codes.ClientsRefused),
		},
		row("EndpointSlices and the MCS API"),
		[]Panel{
			graph("EndpointSlices", "Of remote backends, with their endpoints.", "short",
				query{maxBy("cluster", of("mesh_agent_endpointslices")), "{{cluster}} slices"},
				query{maxBy("cluster", of("mesh_agent_endpointslices_endpoints")), "{{cluster}} endpoints"}),
			graph("Writes of EndpointSlices", "Requests to the Kubernetes API per second.", "cps",
				query{perSecond("", "mesh_agent_endpointslices_written_total"), "applied"},
				query{perSecond("", "mesh_agent_endpointslices_deleted_total"), "deleted"},
				query{perSecond("", "mesh_agent_endpointslices_failed_total"), "failed"}).wide(16).runbook(codes.KubernetesRefuses),
			graph("ServiceImports", "That the operator keeps.", "short", query{maxBy("cluster", of("mesh_agent_mcs_serviceimports")), "{{cluster}}"}),
			graph("Writes of the MCS API", "Requests to the Kubernetes API per second.", "cps",
				query{perSecond("", "mesh_agent_mcs_written_total"), "applied"},
				query{perSecond("", "mesh_agent_mcs_deleted_total"), "deleted"},
				query{perSecond("", "mesh_agent_mcs_failed_total"), "failed"}).wide(16).runbook(codes.KubernetesRefuses),
		},
		row("Discovery for Prometheus, and the HTTP API"),
		[]Panel{
			graph("Lists of targets", "Per second, by list. Those that are not given leave Prometheus with what it had.", "reqps",
				query{perSecond("list, outcome", "mesh_agent_discovery_answers_total"), "{{list}} {{outcome}}"}).wide(12).runbook(codes.NotReadyToServe),
			graph("Refused requests", "Over TCP, per second, by the bound that they exceeded.", "cps",
				query{perSecond("limit", "mesh_agent_api_refused_total"), "{{limit}}"}).wide(12).runbook(codes.ClientsRefused),
		},
	)
}
