package monitoring

import (
	"fmt"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Metrics that several alerts and panels use.
const (
	state     = "mesh_agent_clustermesh_remote_cluster_state"
	readiness = "mesh_agent_clustermesh_remote_cluster_readiness_status"
	buildInfo = "mesh_agent_build_info"
)

// jobs are those that scrape agents.
const jobs = `job=~".*mesh-agent.*"`

// The subjects of alerts: all agents of a job in a cluster, and, of these, one remote cluster.
const (
	byJob    = "by (cluster, job)"
	byRemote = "by (cluster, job, target_cluster)"
)

// unreachable are the codes of a cluster without a connection that answers.
func unreachable() []codes.Code {
	return []codes.Code{codes.NotConnectedYet, codes.ConnectionLost, codes.EtcdSilent, codes.WithoutContact, codes.ProtocolBroken}
}

// unusable are the codes of a cluster of which nothing is read until an operator changes the configuration.
func unusable() []codes.Code {
	return []codes.Code{
		codes.FileUnusable, codes.ConfigurationRefused, codes.ClusterIDTaken, codes.ClusterNotAdmitted, codes.ClusterIDNotPinned,
		codes.ClusterIDRemembered, codes.ClusterIDUnsteady,
	}
}

// agents selects those that say one of these of a cluster.
func agents(all ...codes.Code) string {
	var texts []string
	for _, c := range all {
		texts = append(texts, string(c))
	}
	return fmt.Sprintf(`%s{code=~"%s"}`, state, strings.Join(texts, "|"))
}

// share is how many of the agents say one of these of a cluster.
func share(all ...codes.Code) string {
	return fmt.Sprintf("count %s (%s) / count %s (%s)", byRemote, agents(all...), byRemote, state)
}

// lasting counts the agents that say one of these, and did so five minutes ago, too. While all agents are
// started one after the other there is always one that does not know a cluster yet, and never the same one.
func lasting(all ...codes.Code) string {
	one := agents(all...)
	return fmt.Sprintf("count %s (%s and ignoring (state, code) %s offset 5m)", byRemote, one, one)
}

const (
	remote   = "{{ $labels.target_cluster }}"
	ofAgents = "{{ $value }} of the agents of {{ $labels.job }}"
)

// expiry is when each certificate of the connection with a remote cluster expires, as the first agent has it.
const expiry = "min by (cluster, job, target_cluster, certificate) (mesh_agent_clustermesh_remote_cluster_certificate_expiry_timestamp_seconds)"

// connectionAlerts are about the connections between agents and the etcd of a remote cluster.
func connectionAlerts() []Alert {
	away := append(unreachable(), unusable()...)
	return []Alert{
		{
			Name: "MeshClusterUnreachable", Severity: Critical, Code: codes.ConnectionLost, For: "10m",
			Expr:        share(away...) + " > 0.5 unless " + share(unusable()...) + " > 0.5",
			Summary:     "Cluster " + remote + " cannot be reached by most agents.",
			Description: "{{ $value | humanizePercentage }} of the agents of {{ $labels.job }} have no working connection to it, or cannot use it. They serve its last known data, and the disconnect policy demotes or withdraws its backends.",
		},
		{
			Name: "MeshClusterUnreachableFromNodes", Severity: Warning, Code: codes.NotConnectedYet, For: "10m",
			Expr:        lasting(away...) + " and " + share(away...) + " <= 0.5",
			Summary:     "Cluster " + remote + " cannot be reached or used from some nodes.",
			Description: ofAgents + " read nothing new of it, and most agents do: look at the nodes of these.",
		},
		{
			Name: "MeshClusterFlapping", Severity: Warning, Code: codes.ClusterDisconnected, For: "1m",
			Expr:        "max " + byRemote + " (changes(" + readiness + "[30m])) >= 6",
			Summary:     "The connection with cluster " + remote + " is unstable.",
			Description: "An agent of {{ $labels.job }} has lost or opened it {{ $value }} times within half an hour.",
		},
		{
			Name: "MeshClusterUnusable", Severity: Critical, Code: codes.ClusterFailed, For: "10m",
			Expr:        share(unusable()...) + " > 0.5",
			Summary:     "Cluster " + remote + " cannot be used.",
			Description: "Its client file, its configuration or its ID is wrong, say {{ $value | humanizePercentage }} of the agents of {{ $labels.job }}. They read nothing of it until this is corrected.",
		},
		{
			Name: "MeshClusterNotWritten", Severity: Warning, Code: codes.NoCanary, For: "10m",
			Expr:        lasting(codes.NoConfiguration, codes.NoCanary, codes.ConfigurationGone, codes.DetailsMissing, codes.EtcdEmpty, codes.EtcdOfAnother),
			Summary:     "Cluster " + remote + " has not written its state completely.",
			Description: "Its etcd answers. Its configuration or a resource that it announces is missing, say " + ofAgents + ".",
		},
		{
			Name: "MeshClusterNotSynced", Severity: Warning, Code: codes.NotConfirmed, For: "10m",
			Expr:        lasting(codes.ListFails, codes.Copying, codes.NotFollowed, codes.StreamBroken, codes.CopyBehind, codes.NotConfirmed, codes.ListTooLong),
			Summary:     "Cluster " + remote + " is connected but not synced.",
			Description: "Lists fail or do not end, or changes do not arrive, say " + ofAgents + ".",
		},
		{
			Name: "MeshClusterHeartbeatMissing", Severity: Warning, Code: codes.NoHeartbeat, For: "5m",
			Expr:        "max " + byRemote + " (mesh_agent_clustermesh_remote_cluster_heartbeat_age_seconds and " + readiness + " == 1) > 150",
			Summary:     "The state of cluster " + remote + " is not written.",
			Description: "Its etcd answers, and its last heartbeat is {{ $value | humanizeDuration }} old: what changes there may not arrive.",
		},
		{
			Name: "MeshClusterCertificateExpired", Severity: Critical, Code: codes.SessionOutlivesCertificate, For: "5m",
			Expr:        lasting(codes.SessionOutlivesCertificate),
			Summary:     "The client certificate for cluster " + remote + " has expired.",
			Description: ofAgents + " still use an older session. The etcd refuses the next one.",
		},
		{
			Name: "MeshClusterCertificateEnds", Severity: Warning, Code: codes.CertificateEnds, For: "5m",
			Expr:        expiry + " - time() < 30 * 86400 >= 7 * 86400",
			Summary:     "A certificate of the connection to cluster " + remote + " expires within 30 days.",
			Description: "The certificate is that of the {{ $labels.certificate }}. It expires in {{ $value | humanizeDuration }}. Those of the server are as of the last handshake.",
		},
		{
			Name: "MeshClusterCertificateEndsSoon", Severity: Critical, Code: codes.CertificateEndsSoon, For: "5m",
			Expr:        expiry + " - time() < 7 * 86400",
			Summary:     "A certificate of the connection to cluster " + remote + " expires within 7 days.",
			Description: "The certificate is that of the {{ $labels.certificate }}. It expires in {{ $value | humanizeDuration }}. The next connection after that fails. Those of the server are as of the last handshake.",
		},
		{
			Name: "MeshClusterNextConnectionFails", Severity: Critical, Code: codes.NextConnectionFails, For: "5m",
			Expr:        "count " + byRemote + ` (mesh_agent_clustermesh_remote_cluster_notice{code="` + string(codes.NextConnectionFails) + `"} == 1)`,
			Summary:     "The next connection to cluster " + remote + " fails.",
			Description: ofAgents + " are connected, and cannot use the certificate, the key or the authorities on disk for a new connection.",
		},
		{
			Name: "MeshInternalError", Severity: Warning, Code: codes.InternalError, For: "0m",
			Expr:        "sum " + byRemote + " (increase(mesh_agent_clustermesh_remote_cluster_internal_errors_total[1h])) > 0",
			Summary:     "An agent has an internal error with cluster " + remote + ".",
			Description: "The work on the cluster ended in an internal error and was restarted.",
		},
	}
}

// policyAlerts are about what becomes of the backends of a cluster that is in doubt.
func policyAlerts() []Alert {
	decided := "max " + byRemote + " (mesh_agent_clustermesh_remote_cluster_policy_state)"
	return []Alert{
		{
			Name: "MeshClusterDemoted", Severity: Warning, Code: codes.ClusterDemoted, For: "5m",
			Expr:        decided + " == 1",
			Summary:     "The service backends of cluster " + remote + " are demoted.",
			Description: "The cluster could not be confirmed for too long. Its backends are used only where no other cluster has a usable one.",
		},
		{
			Name: "MeshClusterWithdrawn", Severity: Critical, Code: codes.ClusterWithdrawn, For: "5m",
			Expr:        decided + " == 2",
			Summary:     "The service backends of cluster " + remote + " are withdrawn.",
			Description: "The cluster could not be confirmed for so long that its backends are removed from every service of which another cluster has a usable one.",
		},
		{
			Name: "MeshPolicyHeld", Severity: Critical, Code: codes.PolicyHeld, For: "5m",
			Expr:        "sum " + byJob + " (mesh_agent_clustermesh_policy_held) > 0",
			Summary:     "Most clusters are in doubt at once.",
			Description: ofAgents + " see more than half of the clusters in doubt. The cause is probably local to these agents. The disconnect policy demotes and withdraws no cluster.",
		},
	}
}
