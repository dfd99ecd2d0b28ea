package codes

// Why a cluster is in the state that it is in.
const (
	AllFollowed          Code = "MESH-1200"
	BeingRemoved         Code = "MESH-1201"
	FileUnusable         Code = "MESH-1202"
	ConfigurationRefused Code = "MESH-1203"
	ClusterIDTaken       Code = "MESH-1204"
	NotConnectedYet      Code = "MESH-1205"
	ConnectionLost       Code = "MESH-1206"
	EtcdSilent           Code = "MESH-1207"
	NoConfiguration      Code = "MESH-1208"
	NoCanary             Code = "MESH-1209"
	ListFails            Code = "MESH-1210"
	Copying              Code = "MESH-1211"
	NotFollowed          Code = "MESH-1212"
	ConfigurationGone    Code = "MESH-1213"
	DetailsMissing       Code = "MESH-1214"
	StreamBroken         Code = "MESH-1215"
	CopyBehind           Code = "MESH-1216"
	NotConfirmed         Code = "MESH-1217"
	AllRefused           Code = "MESH-1218"
	NoHeartbeat          Code = "MESH-1219"
	WithoutContact       Code = "MESH-1220"

	CopyStopped Code = "MESH-1240"

	SessionOutlivesCertificate Code = "MESH-1221"

	ProtocolBroken Code = "MESH-1222"
	InternalError  Code = "MESH-1223"
	OverBudget     Code = "MESH-1224"
	ListTooLong    Code = "MESH-1225"
	EventsPaced    Code = "MESH-1226"
	OverMemory     Code = "MESH-1227"
)

// copyStopped is that of a copy alone.
func copyStopped() Entry {
	return Entry{
		Code: CopyStopped, Severity: Error, Title: "the copy is stopped: our own etcd is nearly full",
		Cause:  "A mirror puts nothing more into an etcd that is nearly full, of this cluster and of any other. What was copied before stays there, and becomes old.",
		Remedy: makeRoom + " Copying goes on by itself when there is room.",
	}
}

func states() []Entry {
	const (
		checkPath = "'mesh-agent troubleshoot CLUSTER' finds out from this node which step fails: DNS, firewall, TLS, the certificates of both sides, rights, the etcd itself. The agent keeps trying."
		writer    = "Look at what writes that cluster's state: clustermesh-apiserver, mesh-agent operate, or the mirror of a copy."
	)
	return []Entry{
		copyStopped(),
		{
			Code: AllFollowed, Severity: Info, Title: "everything of the cluster is followed",
			Cause: "All that it exports was copied, and each change arrives by a stream that is known to work.", Remedy: "Nothing to do.",
		},
		{
			Code: BeingRemoved, Severity: Info, Title: "the cluster is being removed",
			Cause: "Its client file is gone, and its entries are being withdrawn.", Remedy: "Nothing to do: it disappears when all its entries are withdrawn.",
		},
		{
			Code: FileUnusable, Severity: Error, Title: "the client file cannot be used",
			Cause:  "The file in the mesh directory is no etcd client configuration, or names files that cannot be read.",
			Remedy: "Correct the file: 'mesh-agent config check' names every mistake. The agent reads it again when it changes.",
		},
		{
			Code: ConfigurationRefused, Severity: Error, Title: "the cluster's configuration cannot be used",
			Cause:  "What the cluster says of itself does not fit this mesh, for instance its ID or the number of clusters. Nothing is read of it.",
			Remedy: "Change what the message names, in that cluster or here. The agent sees it at once.",
		},
		{
			Code: ClusterIDTaken, Severity: Error, Title: "another cluster has the cluster ID",
			Cause:  "A cluster that was here first, or the own one, has the same cluster ID. Nothing is read of this one.",
			Remedy: "Give each cluster an ID of its own: cluster.id in the values of its Cilium.",
		},
		{
			Code: NotConnectedYet, Severity: Warning, Title: "the cluster was never connected",
			Cause: "No session with its etcd yet, or the one before was lost before the first complete copy.", Remedy: checkPath,
		},
		{
			Code: ConnectionLost, Severity: Warning, Title: "the connection is lost",
			Cause:  "The session with its etcd has ended, and no new one could be had. What was known is kept and served; its age is shown.",
			Remedy: checkPath,
		},
		{
			Code: EtcdSilent, Severity: Warning, Title: "the etcd does not answer",
			Cause:  "The connection stands, and reads that prove what is known get no answer: the etcd hangs, is overloaded, or has lost its quorum. What was known is kept and served.",
			Remedy: checkPath,
		},
		{
			Code: NoConfiguration, Severity: Warning, Title: "the cluster has no configuration",
			Cause:  "The etcd answers, and the key with the cluster's configuration is missing or cannot be read.",
			Remedy: "Is it the etcd of that cluster, and is the file named as the cluster? " + writer,
		},
		{
			Code: NoCanary, Severity: Warning, Title: "the cluster has not written everything yet",
			Cause:  "It says that it writes a key when all of a resource is written, and this key is missing. Reading before would take an incomplete copy for all.",
			Remedy: "It comes by itself when that cluster has started. If it does not: " + writer,
		},
		{
			Code: ListFails, Severity: Warning, Title: "a list fails",
			Cause: "The first copy of a resource ended with the error in the message.", Remedy: checkPath,
		},
		{
			Code: Copying, Severity: Info, Title: "the cluster is being copied",
			Cause:  "The first lists run; the message says how far they are.",
			Remedy: "Wait: 'mesh-agent status --wait --for=synced' follows it.",
		},
		{
			Code: NotFollowed, Severity: Warning, Title: "not everything is followed at this moment",
			Cause:  "The session is new, or the configuration has changed: some streams do not run yet. What was known is kept and served.",
			Remedy: "Wait a moment; the message says what is waited for.",
		},
		{
			Code: ConfigurationGone, Severity: Warning, Title: "the configuration was deleted or spoilt while connected",
			Cause: "The one before stays in force. A writer that shuts a cluster down deletes it; one that works does not.", Remedy: writer,
		},
		{
			Code: DetailsMissing, Severity: Warning, Title: "details of backends are missing",
			Cause: "The cluster announces endpoint slices and has not written them all, so nodes, zones and conditions of its backends are not known.", Remedy: writer,
		},
		{
			Code: StreamBroken, Severity: Warning, Title: "the stream of a resource is broken",
			Cause: "It ended with the error in the message, and is begun again. What was known is kept and served.", Remedy: checkPath,
		},
		{
			Code: CopyBehind, Severity: Warning, Title: "a copy is behind",
			Cause:  "The mirror has read more than it could write into the own kvstore.",
			Remedy: "Look at the load and the limits of the own kvstore (--kvstore-opt etcd.qps); the mirror goes on by itself.",
		},
		{
			Code: NotConfirmed, Severity: Warning, Title: "a resource could not be confirmed for a while",
			Cause:  "The etcd answers, and the stream of the resource has not come as far as the etcd is: it is slow, or cut off. What is known is served, but the remote may have moved on.",
			Remedy: "If it stays so, look at the load and the latency of that etcd.",
		},
		{
			Code: AllRefused, Severity: Error, Title: "every entry of a resource is refused",
			Cause: "None of the values makes sense, or all belong to another cluster: the wrong etcd, or a writer of another version.", Remedy: writer,
		},
		{
			Code: NoHeartbeat, Severity: Warning, Title: "the cluster's heartbeat is missing",
			Cause:  "Its etcd answers, and nobody has written the heartbeat for two minutes: what writes the cluster's state may be gone, and changes may not arrive. The data is what the etcd has.",
			Remedy: writer,
		},
		{
			Code: SessionOutlivesCertificate, Severity: Warning, Title: "the client certificate has expired while connected",
			Cause:  "A session that was made before goes on, so all is known as of now; the next one will be refused.",
			Remedy: "Renew the certificate that the client file names. The agent reads it at the next connection by itself; no restart is needed.",
		},
		{
			Code: ProtocolBroken, Severity: Error, Title: "the server breaks etcd's protocol",
			Cause:  "An answer cannot be that of an etcd: a key that was not asked for, a list out of order, a revision that cannot be, bytes that are no message. Nothing of it was used, and the session was ended. What was known before is kept.",
			Remedy: "Find out what answers at that endpoint: a proxy in between, a damaged server, or somebody who means harm. Other clusters are not affected. The agent keeps trying; without the client file it stops.",
		},
		{
			Code: InternalError, Severity: Error, Title: "an internal error ended the work on the cluster",
			Cause:  "The agent has a mistake that this cluster's data or server brings out. Only this cluster is affected: its session ended and is begun again. The log has the place in the code, once.",
			Remedy: "Report it with the output of 'mesh-agent bugreport'. Until it is mended, the client file may be taken away.",
		},
		{
			Code: OverBudget, Severity: Error, Title: "the cluster has more than its budget",
			Cause:  "It has more keys, more bytes or larger values of a resource than it may have here. What was known is kept, what exceeds the budget is refused and counted.",
			Remedy: "Find out why it has so much. If it is right so, raise the budget that the message names, for instance --remote-budget CLUSTER.ips.keys=2000000.",
		},
		{
			Code: OverMemory, Severity: Error, Title: "the entries of remote clusters take as much memory as they may",
			Cause:  "What all remote clusters have together would take more than --remote-memory, which is 70 % of GOMEMLIMIT where it is not given. What was known is kept, and every cluster has a share of its own; what is beyond it is refused and counted.",
			Remedy: "'mesh-agent describe cluster NAME' shows what each cluster has. If all of it is right, raise the memory limit of the container. If one has more than it should, lower its budget: --remote-budget CLUSTER.services.bytes=64Mi.",
		},
		{
			Code: ListTooLong, Severity: Error, Title: "a list takes longer than it may",
			Cause:  "The server gives the keys of a resource too slowly, or without end. The list was given up, and is begun again; what was known is kept.",
			Remedy: "Look at the load of that etcd and the link to it. If it is right so, allow more: --remote-budget CLUSTER.list=30m.",
		},
		{
			Code: EventsPaced, Severity: Warning, Title: "events come faster than they are taken",
			Cause:  "The cluster sends more events a second than it may. They are read more slowly: none is lost, and what is known of the cluster is older than usual by the delay that its freshness tells.",
			Remedy: "Find out what writes so much in that cluster. If it is right so, allow more: --remote-budget CLUSTER.events=20000.",
		},
		{
			Code: WithoutContact, Severity: Warning, Title: "the backends are withheld for want of contact",
			Cause: "There was none for longer than --clustermesh-cache-ttl; nodes, identities and addresses are kept.", Remedy: checkPath,
		},
	}
}
