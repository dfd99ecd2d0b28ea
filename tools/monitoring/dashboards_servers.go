package monitoring

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// serversDashboard answers: do those who use the mesh get answers?
func serversDashboard() Dashboard {
	return newDashboard("servers", "DNS, xDS, EndpointSlices, MCS API, discovery", "Do those who use the mesh get what they ask for?", nil,
		row("DNS"),
		[]Panel{
			graph("Queries", "Per second, by response code. SERVFAIL: not every cluster is known.", "reqps",
				query{perSecond("rcode", "mesh_agent_dns_queries_total"), "{{rcode}}"}).runbook(codes.NotReadyToServe),
			graph("Response time", "The 99th percentile.", "s", query{quantile("0.99", "", "mesh_agent_dns_answer_seconds"), "99 %"}),
			graph("Refused", "Queries and connections per second that exceeded a limit.", "cps",
				query{perSecond("limit", "mesh_agent_dns_refused_total"), "{{limit}}"}).runbook(codes.ClientsRefused),
		},
		row("xDS"),
		[]Panel{
			graph("Streams", "Connected clients.", "short", query{sumBy("variant", of("mesh_agent_xds_streams")), "{{variant}}"}),
			graph("Names", "Names that clients subscribe to, on the agent with the most.", "short", query{maxBy("type", of("mesh_agent_xds_names")), "{{type}}"}),
			graph("Requests", "Requests per second, by type. Clients confirm each response with a request.", "reqps", query{perSecond("type", "mesh_agent_xds_requests_total"), "{{type}}"}),
			graph("Responses", "Responses and updates sent per second.", "cps", query{perSecond("type", "mesh_agent_xds_responses_total"), "{{type}}"}),
			graph("Rejected by clients", "Per second. The clients keep their previous resources.", "cps",
				query{perSecond("type", "mesh_agent_xds_rejected_total"), "{{type}}"}).runbook(codes.UpdatesRejected),
			graph("Refused", "Refused connections, streams and requests per second, by reason.", "cps",
				query{perSecond("reason", "mesh_agent_xds_refused_total"), "{{reason}}"}).runbook(codes.ClientsRefused),
		},
		row("EndpointSlices and the MCS API"),
		[]Panel{
			graph("EndpointSlices", "EndpointSlices of remote backends, and their endpoints.", "short",
				query{maxBy("cluster", of("mesh_agent_endpointslices")), "{{cluster}} slices"},
				query{maxBy("cluster", of("mesh_agent_endpointslices_endpoints")), "{{cluster}} endpoints"}),
			graph("Writes of EndpointSlices", "Requests to the Kubernetes API per second.", "cps",
				query{perSecond("", "mesh_agent_endpointslices_written_total"), "applied"},
				query{perSecond("", "mesh_agent_endpointslices_deleted_total"), "deleted"},
				query{perSecond("", "mesh_agent_endpointslices_failed_total"), "failed"}).wide(16).runbook(codes.KubernetesRefuses),
			graph("ServiceImports", "ServiceImports that the operator manages.", "short", query{maxBy("cluster", of("mesh_agent_mcs_serviceimports")), "{{cluster}}"}),
			graph("Writes of the MCS API", "Requests to the Kubernetes API per second.", "cps",
				query{perSecond("", "mesh_agent_mcs_written_total"), "applied"},
				query{perSecond("", "mesh_agent_mcs_deleted_total"), "deleted"},
				query{perSecond("", "mesh_agent_mcs_failed_total"), "failed"}).wide(16).runbook(codes.KubernetesRefuses),
		},
		row("Discovery for Prometheus, and the HTTP API"),
		[]Panel{
			graph("Lists of targets", "Requests per second, by list. When a request is refused, Prometheus keeps its previous targets.", "reqps",
				query{perSecond("list, outcome", "mesh_agent_discovery_answers_total"), "{{list}} {{outcome}}"}).wide(12).runbook(codes.NotReadyToServe),
			graph("Refused requests", "Requests over TCP per second, by exceeded limit.", "cps",
				query{perSecond("limit", "mesh_agent_api_refused_total"), "{{limit}}"}).wide(12).runbook(codes.ClientsRefused),
		},
	)
}
