package codes

// What can be wrong with a mesh directory and what its files name.
const (
	ClientFileMisnamed       Code = "MESH-6001"
	ClientFileUnreadable     Code = "MESH-6002"
	ClientFileNoYAML         Code = "MESH-6003"
	ClientFileOption         Code = "MESH-6004"
	ClientFileEndpoints      Code = "MESH-6005"
	ClientFileUser           Code = "MESH-6006"
	FileMissing              Code = "MESH-6007"
	FileForbidden            Code = "MESH-6008"
	AuthoritiesUnusable      Code = "MESH-6009"
	CertificateAlone         Code = "MESH-6010"
	CertificateOfOtherKey    Code = "MESH-6011"
	CertificateUnusable      Code = "MESH-6012"
	CertificateExpired       Code = "MESH-6013"
	CertificateNotYetValid   Code = "MESH-6014"
	CertificateExpiresSoon   Code = "MESH-6015"
	AuthoritiesExpired       Code = "MESH-6016"
	AuthoritiesExpireSoon    Code = "MESH-6017"
	EndpointPlain            Code = "MESH-6018"
	ServerNotVerified        Code = "MESH-6019"
	SeveralEndpoints         Code = "MESH-6020"
	SecretReadable           Code = "MESH-6021"
	SystemAuthorities        Code = "MESH-6022"
	SameContents             Code = "MESH-6023"
	OwnClusterFile           Code = "MESH-6024"
	UnusualUser              Code = "MESH-6025"
	CertificateNotForClients Code = "MESH-6026"
	NamesDifferInCase        Code = "MESH-6027"
	EndpointHostImpossible   Code = "MESH-6028"
	EndpointIsAddress        Code = "MESH-6029"
)

// What a whole mesh directory would do, beside or instead of what is there.
const (
	EtcdShared        Code = "MESH-6101"
	WouldAdd          Code = "MESH-6301"
	WouldChange       Code = "MESH-6302"
	WouldRemove       Code = "MESH-6303"
	WouldChangeID     Code = "MESH-6304"
	AgentOfOtherNames Code = "MESH-6305"

	PolicyFileUnusable   Code = "MESH-6320"
	PolicyClusterUnknown Code = "MESH-6321"
	PolicyNotAdmitted    Code = "MESH-6322"
	PolicyPinMismatch    Code = "MESH-6323"
	PolicyWouldRefuse    Code = "MESH-6324"
	PolicyNotCompared    Code = "MESH-6325"

	ContentsNotCompared Code = "MESH-7010"
)

func checks() []Entry {
	return append(append(fileChecks(), certificateChecks()...), append(directoryChecks(), policyChecks()...)...)
}

func fileChecks() []Entry {
	return []Entry{
		{
			Code: ClientFileMisnamed, Severity: Error, Title: "a client file has a name that is no cluster's",
			Cause:  "The file has endpoints, and its name is not that of a cluster: 1 to 32 lower-case letters, digits and hyphens. It is ignored.",
			Remedy: "Rename the file to its cluster.",
		},
		{
			Code: ClientFileUnreadable, Severity: Error, Title: "what may be a client file cannot be read",
			Cause:  "The entry of the mesh directory leads to no regular file, to itself, or to something that cannot be read.",
			Remedy: "Put a readable file in its place, or remove the entry.",
		},
		{
			Code: ClientFileNoYAML, Severity: Error, Title: "a client file is no YAML with options",
			Cause:  "It cannot be parsed, has an option twice, or is no mapping of options to values.",
			Remedy: "Correct the line that is named.",
		},
		{
			Code: ClientFileOption, Severity: Error, Title: "a client file has an option that is not understood",
			Cause:  "An option is unknown, or its value is not of the option's kind. Releases of etcd and Cilium ignore some such options, and with them what was meant.",
			Remedy: "Correct the option that is named, or take it out.",
		},
		{
			Code: ClientFileEndpoints, Severity: Error, Title: "the endpoints of a client file cannot be used",
			Cause:  "There are none, or one is no URL with host and port and the scheme http, https, unix or unixs.",
			Remedy: "Write each endpoint like https://c2.mesh.cilium.io:2379.",
		},
		{
			Code: ClientFileUser, Severity: Error, Title: "a user without a password, or a password without a user",
			Cause:  "Of username and password one is given without the other.",
			Remedy: "Give both, or none: then the common name of the client certificate is the user.",
		},
		{
			Code: FileMissing, Severity: Error, Title: "a file is missing",
			Cause:  "A client file, or an authority, certificate or key that one names, is not there.",
			Remedy: "Put the file there, or correct the path. In a pod the Secret that holds it must be mounted.",
		},
		{
			Code: FileForbidden, Severity: Error, Title: "a file may not be read",
			Cause:  "A client file, or an authority, certificate or key that one names, is not readable for the user who looks.",
			Remedy: "Let the user that the agent runs as read it.",
		},
		{
			Code: EndpointPlain, Severity: Warning, Title: "a connection is not encrypted",
			Cause:  "An endpoint on another machine is used without TLS: everybody on the way can read and change what it says.",
			Remedy: "Use https:// in endpoints where the server speaks TLS.",
		},
		{
			Code: ServerNotVerified, Severity: Warning, Title: "a server's certificate is not verified",
			Cause:  "insecure-skip-tls-verify is set: whoever answers at the endpoint is believed.",
			Remedy: "Take it out, and name the authority in trusted-ca-file.",
		},
		{
			Code: SeveralEndpoints, Severity: Warning, Title: "a client file has several endpoints",
			Cause:  "A session uses one endpoint at a time, and the next one when it fails. Cilium writes one endpoint per file.",
			Remedy: "Nothing to do, when all of them are members or replicas of one cluster's etcd. Else leave the right one.",
		},
		{
			Code: SecretReadable, Severity: Warning, Title: "everybody on this machine can read a secret",
			Cause:  "A file with a password or a private key is readable for everybody.",
			Remedy: "Take that right away: chmod o-r, or defaultMode in the volume of a Secret.",
		},
		{
			Code: SystemAuthorities, Severity: Info, Title: "the system's authorities vouch for the server",
			Cause:  "TLS is used and there is no trusted-ca-file, so every authority that this system trusts may vouch for the server.",
			Remedy: "Nothing to do, when a public authority signs the servers. Else name your own in trusted-ca-file.",
		},
		{
			Code: SameContents, Severity: Info, Title: "two client files have the same contents",
			Cause:  "Two clusters are read from one etcd with one user.",
			Remedy: "Nothing to do, when both clusters are cached in that etcd (KVStoreMesh). Else one of them is a copy by mistake: correct it.",
		},
		{
			Code: OwnClusterFile, Severity: Info, Title: "a client file has the name of the own cluster",
			Cause:  "One directory often serves all clusters of a mesh. The own cluster is no remote one, so its file is ignored.",
			Remedy: "Nothing to do, when the name of the own cluster is right.",
		},
		{
			Code: UnusualUser, Severity: Info, Title: "a client file's user is none of Cilium's",
			Cause:  "Cilium's users for readers are remote, remote-NAME and local-NAME, with the name of the cluster that reads; the user of this file is another one.",
			Remedy: "Nothing to do, when that etcd has a user of this name with the right role.",
		},
		{
			Code: NamesDifferInCase, Severity: Error, Title: "the names of two clusters differ in upper and lower case only",
			Cause:  "A client file's name has upper-case letters, and there is a cluster of that name without. It is no name of a cluster, so the file is ignored.",
			Remedy: "Remove the one that is a mistake.",
		},
		{
			Code: EndpointHostImpossible, Severity: Error, Title: "the host of an endpoint can be no host",
			Cause:  "It is neither an address nor a name that DNS could have: an empty part, one of more than 63 characters, or characters that no name has.",
			Remedy: "Correct the endpoint.",
		},
		{
			Code: EndpointIsAddress, Severity: Info, Title: "an endpoint with TLS is an address",
			Cause:  "Then the server's certificate must be for that address. Those that Cilium makes are for names, such as c2.mesh.cilium.io.",
			Remedy: "Nothing to do, when it is. Else use the name, and give it the address with cilium-host-aliases.",
		},
	}
}

func certificateChecks() []Entry {
	return []Entry{
		{
			Code: AuthoritiesUnusable, Severity: Error, Title: "the authorities of a client file cannot be used",
			Cause:  "trusted-ca-file leads to no regular file, or to one without a certificate.",
			Remedy: "It must hold, in PEM form, the authorities that sign the server certificates of that cluster.",
		},
		{
			Code: CertificateAlone, Severity: Error, Title: "a client certificate without a key, or a key without a certificate",
			Cause:  "Of cert-file and key-file one is given without the other.",
			Remedy: "Give both, or none where the server asks for no certificate.",
		},
		{
			Code: CertificateOfOtherKey, Severity: Error, Title: "a key does not belong to the client certificate",
			Cause:  "cert-file and key-file are not of one pair: often one of them was renewed without the other.",
			Remedy: "Take both from the same Secret or directory, and renew them together.",
		},
		{
			Code: CertificateUnusable, Severity: Error, Title: "the client certificate or its key cannot be used",
			Cause:  "cert-file or key-file is no certificate and no private key in PEM form.",
			Remedy: "cert-file and key-file must hold, in PEM form, a certificate and its private key.",
		},
		{
			Code: CertificateExpired, Severity: Error, Title: "the client certificate has expired",
			Cause:  "The certificate of the client file, or an authority in the same file, is past its end: the server refuses it.",
			Remedy: "Renew it. The agent reads the new one at its next connection.",
		},
		{
			Code: CertificateNotYetValid, Severity: Error, Title: "the client certificate is not valid yet",
			Cause:  "The certificate of the client file, or an authority in the same file, begins in the future, or the clock here is wrong.",
			Remedy: "Wait, or set the clock.",
		},
		{
			Code: CertificateExpiresSoon, Severity: Warning, Title: "the client certificate expires soon",
			Cause:  "The certificate of the client file, or an authority in the same file, ends within 30 days.",
			Remedy: "Renew it. The agent reads the new one at its next connection.",
		},
		{
			Code: AuthoritiesExpired, Severity: Error, Title: "no authority of a client file is valid",
			Cause:  "The last of the authorities in trusted-ca-file is past its end, or not valid yet: no server's certificate will be accepted.",
			Remedy: "Put the authority in that signs the servers' certificates today.",
		},
		{
			Code: AuthoritiesExpireSoon, Severity: Warning, Title: "the last authority of a client file expires soon",
			Cause:  "The last of the authorities in trusted-ca-file ends within 30 days.",
			Remedy: "Renew it, and put the new one beside it before the servers use it.",
		},
		{
			Code: CertificateNotForClients, Severity: Error, Title: "the client certificate is not for clients",
			Cause:  "Its extended key usage is without clientAuth: a server that asks for certificates refuses it. Often it is a server's.",
			Remedy: "Issue one with the usage 'client auth'.",
		},
	}
}

func directoryChecks() []Entry {
	return []Entry{
		{
			Code: EtcdShared, Severity: Warning, Title: "several clusters are in one etcd",
			Cause:  "Client files of several clusters lead to one etcd, and these clusters do not say that they are copies there (KVStoreMesh). Mostly a file leads to another cluster's etcd.",
			Remedy: "Check where the endpoints of these files lead.",
		},
		{
			Code: WouldAdd, Severity: Info, Title: "a cluster would be added",
			Cause:  "The directory has a client file of a cluster that the running agent does not have.",
			Remedy: "Nothing to do, when it is meant so.",
		},
		{
			Code: WouldChange, Severity: Info, Title: "a cluster's client file would change",
			Cause:  "The client file, or the authorities, certificate or key that it names, are others than those with which the running agent has connected. For another client file or other authorities it connects anew; what is known is kept meanwhile. A new certificate or key is used from the next connection on.",
			Remedy: "Nothing to do, when it is meant so.",
		},
		{
			Code: WouldRemove, Severity: Warning, Title: "a cluster would be removed",
			Cause:  "The running agent has a cluster that has no client file in the directory: everything that it has brought would be withdrawn, and connections to its services would break.",
			Remedy: "Put its client file into the directory, unless it is meant so.",
		},
		{
			Code: WouldChangeID, Severity: Warning, Title: "a cluster would change its ID",
			Cause:  "The cluster that answers at the directory's endpoints says another cluster ID than the one that the running agent knows: its entries would be withdrawn and copied again.",
			Remedy: "Check where the endpoints lead, unless it is meant so.",
		},
		{
			Code: AgentOfOtherNames, Severity: Warning, Title: "the running agent is of another cluster",
			Cause:  "The name of the own cluster that the check was given is not that of the running agent: its own file would be taken for a remote one, or another way round.",
			Remedy: "Give --cluster-name and --cluster-id of the agent to the check too, or choose the right agent with --server or --socket.",
		},
		{
			Code: ContentsNotCompared, Severity: Warning, Title: "contents of client files are not compared with the running agent",
			Cause:  "An agent shows only keyed hashes of the contents, since passwords are among them, and gives the key over its unix socket only. This one was asked over TCP, or is of an older version.",
			Remedy: "Run the check on the agent's machine, with --socket.",
		},
	}
}

func policyChecks() []Entry {
	return []Entry{
		{
			Code: PolicyFileUnusable, Severity: Error, Title: "the claim policy file cannot be used",
			Cause:  "It cannot be read, is no YAML of the form that docs/claims.md describes, or has a value that is not possible. The agent does not start with it; one that runs keeps what the file said before.",
			Remedy: "Correct what is named.",
		},
		{
			Code: PolicyClusterUnknown, Severity: Info, Title: "there is a setting for a cluster that is not there",
			Cause:  "The claim policy file has an entry for a cluster, or --remote-budget a budget, and it has no client file in the mesh directory.",
			Remedy: "Nothing to do, when the cluster is still to come. Else correct its name, or remove the entry.",
		},
		{
			Code: PolicyNotAdmitted, Severity: Warning, Title: "the claim policy file would not admit a cluster",
			Cause:  "The file has no entry for the cluster, and its default is deny: nothing would be read of it.",
			Remedy: "Give the cluster an entry, unless it is meant so.",
		},
		{
			Code: PolicyPinMismatch, Severity: Error, Title: "the claim policy file gives a cluster another ID than it has",
			Cause:  "The cluster says another ID than its pin, or one that the file pins to another cluster: nothing would be read of it.",
			Remedy: "Find out which ID the cluster should have, and correct the file, or that cluster.",
		},
		{
			Code: PolicyWouldRefuse, Severity: Warning, Title: "the claim policy file would refuse entries that are there",
			Cause:  "The cluster has entries outside of what the file grants it: an agent with this file would not use them.",
			Remedy: "Look at the example: widen the entry of the cluster where it should have that, else see that the cluster ceases to claim it.",
		},
		{
			Code: PolicyNotCompared, Severity: Warning, Title: "it is not known what the claim policy file would refuse",
			Cause:  "The entries of the cluster could not be listed to the end: no session, no readable configuration, no right, or more than the cluster's budget.",
			Remedy: "Find the cause with 'mesh-agent troubleshoot', and check again. Of more than its budget the agent reads no more either: --remote-budget raises it.",
		},
	}
}
