package codes

// Why a cluster cannot be connected, from its name to its configuration. What is
// wrong with its client file is among the checks.
const (
	HostUnknown          Code = "MESH-6201"
	ResolverFails        Code = "MESH-6202"
	ConnectionRefused    Code = "MESH-6203"
	ConnectionUnanswered Code = "MESH-6204"
	ConnectionNoRoute    Code = "MESH-6205"
	ConnectionFails      Code = "MESH-6206"
	SomeAddressesFail    Code = "MESH-6207"

	ServerWithoutTLS Code = "MESH-6211"
	ServerSilent     Code = "MESH-6212"
	HandshakeFails   Code = "MESH-6213"
	ServerNeedsTLS   Code = "MESH-6214"

	ServerAuthorityUnknown   Code = "MESH-6221"
	ServerNameOther          Code = "MESH-6222"
	ServerCertificateInvalid Code = "MESH-6223"
	ServerCertificateSoon    Code = "MESH-6224"
	ServerCertificateUnfit   Code = "MESH-6225"

	ClientCertificateDemanded Code = "MESH-6231"
	ClientCertificateRefused  Code = "MESH-6232"

	EtcdUserRefused Code = "MESH-6241"
	EtcdNoQuorum    Code = "MESH-6242"
	EtcdUnanswered  Code = "MESH-6243"
	EtcdFails       Code = "MESH-6244"
	EtcdAlarm       Code = "MESH-6245"

	RightsMissing        Code = "MESH-6251"
	EtcdOfOther          Code = "MESH-6252"
	ReadFails            Code = "MESH-6253"
	ExportsRightsMissing Code = "MESH-6254"

	HeartbeatAbsent Code = "MESH-6261"
	HeartbeatOld    Code = "MESH-6262"
	HeartbeatAhead  Code = "MESH-6263"

	ConfigurationMissing    Code = "MESH-6271"
	ConfigurationUnreadable Code = "MESH-6272"
	ConfigurationInvalid    Code = "MESH-6273"
	MaxClustersDiffer       Code = "MESH-6274"
)

func troubles() []Entry {
	return append(append(networkTroubles(), tlsTroubles()...), append(etcdTroubles(), contentTroubles()...)...)
}

func networkTroubles() []Entry {
	return []Entry{
		{
			Code: HostUnknown, Severity: Error, Title: "the host of an endpoint is not known",
			Cause:  "DNS says that there is no such name, and the client file gives it no address.",
			Remedy: "Check DNS, or add the name to cilium-host-aliases.",
		},
		{
			Code: ResolverFails, Severity: Error, Title: "the host of an endpoint cannot be looked up",
			Cause:  "The DNS servers of this machine do not answer, or have no address for the name.",
			Remedy: "Ask whether the DNS servers of this machine answer (/etc/resolv.conf), or add the name to cilium-host-aliases.",
		},
		{
			Code: ConnectionRefused, Severity: Error, Title: "nothing listens at an endpoint",
			Cause:  "The machine is there and refuses the connection, or there is no such socket.",
			Remedy: "See that etcd or the clustermesh-apiserver runs, and that it is the right port.",
		},
		{
			Code: ConnectionUnanswered, Severity: Error, Title: "nobody answers at an endpoint",
			Cause:  "Packets to that address get no answer: it is wrong, or something on the way drops them.",
			Remedy: "Check the address, and routes, firewalls and network policies on the way.",
		},
		{
			Code: ConnectionNoRoute, Severity: Error, Title: "there is no route to an endpoint",
			Cause:  "This machine, or one on the way, knows no way to that address.",
			Remedy: "Check the address and the routes.",
		},
		{
			Code: ConnectionFails, Severity: Error, Title: "a connection cannot be made",
			Cause:  "TCP fails for another reason than a refusal, silence or a missing route.",
			Remedy: "Check the address, and that this machine may connect to it.",
		},
		{
			Code: SomeAddressesFail, Severity: Warning, Title: "some addresses of an endpoint do not answer",
			Cause:  "The endpoint has several addresses, and not all of them answer. The agent tries them one after another, which takes time.",
			Remedy: "Take out the addresses that are gone, or mend what is behind them.",
		},
	}
}

func tlsTroubles() []Entry {
	return []Entry{
		{
			Code: ServerWithoutTLS, Severity: Error, Title: "the server does not speak TLS",
			Cause:  "The endpoint says https, and what answers is no TLS.",
			Remedy: "Use http:// if that is meant, or the port where the server speaks TLS.",
		},
		{
			Code: ServerSilent, Severity: Error, Title: "something accepts connections and says nothing",
			Cause:  "The server hangs, is no etcd, or speaks TLS or plain text where the endpoint's scheme says otherwise.",
			Remedy: "See what listens there, and look at its log.",
		},
		{
			Code: HandshakeFails, Severity: Error, Title: "the TLS handshake fails",
			Cause:  "Both sides speak TLS and do not agree, mostly on its version.",
			Remedy: "The server must speak TLS 1.2 or later, and HTTP/2 over it: see that it is an etcd, and its port for clients.",
		},
		{
			Code: ServerNeedsTLS, Severity: Error, Title: "the server does not answer plain text",
			Cause:  "The endpoint says http, and what answers closes the connection: it may speak TLS.",
			Remedy: "Use https:// in endpoints, with the authority in trusted-ca-file.",
		},
		{
			Code: ServerAuthorityUnknown, Severity: Error, Title: "an unknown authority has signed the server's certificate",
			Cause:  "trusted-ca-file does not hold the authority that signed the server's certificate.",
			Remedy: "Put that authority into trusted-ca-file, if the server is the right one.",
		},
		{
			Code: ServerNameOther, Severity: Error, Title: "the server's certificate is for other names",
			Cause:  "The host of the endpoint is none of the names and addresses in the server's certificate.",
			Remedy: "Use one of them in endpoints, with cilium-host-aliases if it does not resolve.",
		},
		{
			Code: ServerCertificateInvalid, Severity: Error, Title: "the server's certificate has expired, or is not valid yet",
			Cause:  "Its dates do not cover this moment, by the clock here.",
			Remedy: "Renew the server's certificate, or set the clock.",
		},
		{
			Code: ServerCertificateSoon, Severity: Warning, Title: "the server's certificate expires soon",
			Cause:  "It ends within 30 days. When it has, no cluster can connect any more.",
			Remedy: "Renew the server's certificate.",
		},
		{
			Code: ServerCertificateUnfit, Severity: Error, Title: "the server's certificate cannot be accepted",
			Cause:  "It is known who signed it, for the right name and dates, and it is not for servers or breaks another rule.",
			Remedy: "Give the server a certificate for servers, signed by an authority of trusted-ca-file.",
		},
		{
			Code: ClientCertificateDemanded, Severity: Error, Title: "the server demands a client certificate",
			Cause:  "It refuses clients without one, and the client file names none.",
			Remedy: "Name a certificate that the server trusts in cert-file, and its key in key-file.",
		},
		{
			Code: ClientCertificateRefused, Severity: Error, Title: "the server refuses our client certificate",
			Cause:  "It does not know the authority that signed the certificate, or does not like its dates or its usage.",
			Remedy: "Check cert-file, its dates, and that the server trusts the authority that signed it.",
		},
	}
}

func etcdTroubles() []Entry {
	return []Entry{
		{
			Code: EtcdUserRefused, Severity: Error, Title: "etcd does not accept who we are",
			Cause:  "There is no user of that name, the password is wrong, or the common name of the certificate is no user.",
			Remedy: "Check username and password, or the common name of the client certificate, against the users of that etcd.",
		},
		{
			Code: EtcdNoQuorum, Severity: Error, Title: "etcd answers and cannot read",
			Cause:  "It has no leader, has lost its quorum, or is overloaded.",
			Remedy: "Look at the members of that etcd, and at their disks.",
		},
		{
			Code: EtcdUnanswered, Severity: Error, Title: "etcd does not answer in time",
			Cause:  "There is a connection and no answer: the etcd or the way to it is overloaded, or it has lost its quorum.",
			Remedy: "Look at the load of that etcd and at its log, and at the network on the way.",
		},
		{
			Code: EtcdFails, Severity: Error, Title: "etcd answers with an error",
			Cause:  "The first requests of a session fail for a reason of the server's.",
			Remedy: "Look at the etcd of that cluster and at its log.",
		},
		{
			Code: EtcdAlarm, Severity: Warning, Title: "etcd has raised an alarm",
			Cause:  "Its space is used up, so that nothing can be written, or its data is damaged.",
			Remedy: "See 'etcdctl alarm list' in that cluster.",
		},
		{
			Code: RightsMissing, Severity: Error, Title: "our user may not read what is needed",
			Cause:  "The role of the etcd user does not cover a key or a prefix that the agent reads.",
			Remedy: "Give the user a role that covers them: each prefix must end exactly where the role's does, mostly in /. An agent that runs tries again within a minute.",
		},
		{
			Code: ExportsRightsMissing, Severity: Warning, Title: "our user may not read the service exports",
			Cause:  "The cluster announces service exports (MCS API), and the role of the etcd user does not cover their prefix. An agent does without them: it does not see that clusters disagree on the session affinity of a service. A mirror waits for them.",
			Remedy: "Give the user a role that covers the prefix; it must end exactly where the role's does, mostly in /.",
		},
		{
			Code: EtcdOfOther, Severity: Error, Title: "this may be the etcd of another cluster",
			Cause:  "We may read its heartbeat, and not the configuration of the cluster that the client file is named after.",
			Remedy: "Check that the file has the name of that cluster, and that its endpoints lead there.",
		},
		{
			Code: ReadFails, Severity: Error, Title: "reads fail",
			Cause:  "A session was made, and reads of what the agent needs fail or have no answer.",
			Remedy: "Look at the load of that etcd, and at the network on the way.",
		},
	}
}

func contentTroubles() []Entry {
	const writer = "See that what writes it runs in that cluster: clustermesh-apiserver, or mesh-agent operate."
	return []Entry{
		{
			Code: HeartbeatAbsent, Severity: Error, Title: "there is no heartbeat",
			Cause:  "Nobody writes the state of that cluster into its etcd.",
			Remedy: writer,
		},
		{
			Code: HeartbeatOld, Severity: Error, Title: "the heartbeat is old",
			Cause:  "The writer of that cluster's state may be gone, or a clock is wrong. What can be read may be out of date.",
			Remedy: writer,
		},
		{
			Code: HeartbeatAhead, Severity: Error, Title: "the heartbeat is of the future",
			Cause:  "A clock is wrong, there or here.",
			Remedy: "Set the clocks: certificates are judged by them too.",
		},
		{
			Code: ConfigurationMissing, Severity: Error, Title: "there is no cluster configuration",
			Cause:  "The etcd has no configuration of the cluster that the client file is named after: it is another cluster's, or nobody has written it yet.",
			Remedy: "Check that the file has the name of that cluster, that its endpoints lead there, and that what writes the configuration runs.",
		},
		{
			Code: ConfigurationUnreadable, Severity: Error, Title: "the cluster configuration cannot be read",
			Cause:  "Its value is no configuration.",
			Remedy: "Check what writes it in that cluster.",
		},
		{
			Code: ConfigurationInvalid, Severity: Error, Title: "the cluster configuration cannot be used",
			Cause:  "The cluster has no ID, or one that is out of range.",
			Remedy: "Give it an ID: cluster.id in the values of its Cilium.",
		},
		{
			Code: MaxClustersDiffer, Severity: Error, Title: "two clusters are of meshes of different sizes",
			Cause:  "The maximum of connected clusters (255 or 511) decides how identities are made of cluster IDs. It is not the same here and there.",
			Remedy: "Give all clusters of a mesh the same --max-connected-clusters (clustermesh.maxConnectedClusters). A running cluster cannot change it without new identities.",
		},
	}
}
