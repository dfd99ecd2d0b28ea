package monitoring

import "github.com/mesh-agent/mesh-agent/pkg/codes"

// clientAlerts are about those who ask agents: by DNS, xDS, HTTP.
func clientAlerts() []Alert {
	// An agent that starts refuses what it cannot know yet. One that still does so minutes later is counted.
	notReady := func(metric, label string) string {
		increase := "increase(" + metric + "{" + label + `="not ready"}`
		return "count " + byJob + " (sum by (cluster, job, instance) (" + increase + "[5m])) > 0 and sum by (cluster, job, instance) (" + increase + "[5m] offset 5m)) > 0)"
	}
	refused := func(name, metric, label, what string) Alert {
		return Alert{
			Name: name, Severity: Warning, Code: codes.ClientsRefused, For: "10m",
			Expr:        "sum by (cluster, job, " + label + ") (increase(" + metric + "[5m])) > 0",
			Summary:     what + " are refused, because there are too many.",
			Description: "A limit of {{ $labels.job }} is exceeded all the time: {{ $labels." + label + " }}.",
		}
	}
	return []Alert{
		refused("MeshDNSRefusing", "mesh_agent_dns_refused_total", "limit", "DNS queries"),
		refused("MeshXDSRefusing", `mesh_agent_xds_refused_total{reason!="not ready"}`, "reason", "xDS clients"),
		refused("MeshAPIRefusing", "mesh_agent_api_refused_total", "limit", "Requests to the HTTP API"),
		{
			Name: "MeshDNSFailing", Severity: Critical, Code: codes.NotReadyToServe, For: "5m",
			Expr: "sum " + byJob + ` (rate(mesh_agent_dns_queries_total{rcode="SERVFAIL"}[5m])) / sum ` + byJob +
				" (rate(mesh_agent_dns_queries_total[5m])) > 0.1",
			Summary:     "DNS queries for services fail.",
			Description: "{{ $value | humanizePercentage }} of the answers of {{ $labels.job }} are SERVFAIL, because not every cluster is known.",
		},
		{
			Name: "MeshXDSNotReady", Severity: Warning, Code: codes.NotReadyToServe, For: "5m",
			Expr:        notReady("mesh_agent_xds_refused_total", "reason"),
			Summary:     "xDS clients get no services from agents that are not ready.",
			Description: ofAgents + " let them wait and then refuse them, because not every cluster is known.",
		},
		{
			Name: "MeshDiscoveryFailing", Severity: Warning, Code: codes.NotReadyToServe, For: "5m",
			Expr:        notReady("mesh_agent_discovery_answers_total", "outcome"),
			Summary:     "Prometheus receives no targets from agents.",
			Description: ofAgents + " answer 503 until every cluster is known. Prometheus keeps its previous targets.",
		},
		{
			Name: "MeshXDSRejected", Severity: Warning, Code: codes.UpdatesRejected, For: "10m",
			Expr:        "sum by (cluster, job, type) (increase(mesh_agent_xds_rejected_total[5m])) > 0",
			Summary:     "xDS clients reject the {{ $labels.type }} that they are sent.",
			Description: "They keep using the last ones that they accepted.",
		},
	}
}

// listenerAlerts are about the certificates that agents show to their clients.
func listenerAlerts() []Alert {
	const left = "min by (cluster, job, certificate) (mesh_agent_listener_certificate_expiry_timestamp_seconds) - time()"
	const which = "The certificate is that of the {{ $labels.certificate }}, for agents of {{ $labels.job }}. It expires in {{ $value | humanizeDuration }}."
	return []Alert{
		{
			Name: "MeshListenerCertificateEnds", Severity: Warning, Code: codes.ListenerCertificateEnds, For: "5m",
			Expr:        left + " < 30 * 86400 >= 7 * 86400",
			Summary:     "A certificate of the listeners of agents expires within 30 days.",
			Description: which,
		},
		{
			Name: "MeshListenerCertificateEndsSoon", Severity: Critical, Code: codes.ListenerCertificateEndsSoon, For: "5m",
			Expr:        left + " < 7 * 86400",
			Summary:     "A certificate of the listeners of agents expires within 7 days.",
			Description: which + " Clients of the HTTP API and of xDS cannot connect after that.",
		},
		{
			Name: "MeshListenerFilesUnusable", Severity: Critical, Code: codes.ListenerFilesUnusable, For: "5m",
			Expr:        "count " + byJob + ` (mesh_agent_listener_notice{code="` + string(codes.ListenerFilesUnusable) + `"} == 1)`,
			Summary:     "Agents cannot use the certificate files of their listeners.",
			Description: ofAgents + " keep the previous files in use, and cannot start again with those on disk.",
		},
	}
}
