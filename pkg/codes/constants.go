// Code generated from codes.txt by go generate; DO NOT EDIT.

package codes

// Clusters.
const (
	ClusterAdded               Code = "MESH-1001" // a cluster was added
	ClusterRemoved             Code = "MESH-1002" // a cluster was removed
	ClusterConnected           Code = "MESH-1003" // a cluster was connected
	ClusterDisconnected        Code = "MESH-1004" // a cluster's connection was lost
	ClusterReady               Code = "MESH-1005" // a cluster is ready
	ClusterSyncing             Code = "MESH-1006" // a cluster is being copied
	ClusterDegraded            Code = "MESH-1007" // a cluster is degraded
	ClusterFailed              Code = "MESH-1008" // a cluster cannot be used
	ClusterConnecting          Code = "MESH-1009" // a cluster is not connected yet
	ClusterRemoving            Code = "MESH-1010" // a cluster is being removed
	ClusterError               Code = "MESH-1011" // a cluster's attempts fail for another reason than before
	ClusterIDChanged           Code = "MESH-1012" // a cluster has another ID than before
	EtcdChanged                Code = "MESH-1013" // another etcd answers for a cluster
	EntriesRejected            Code = "MESH-1014" // entries of a cluster are refused
	EntriesAccepted            Code = "MESH-1015" // no entries of a cluster are refused any longer
	BackendsWithheld           Code = "MESH-1016" // a cluster's service backends are withheld
	BackendsBack               Code = "MESH-1017" // a cluster's service backends are back
	ClusterDemoted             Code = "MESH-1018" // a cluster is demoted
	ClusterWithdrawn           Code = "MESH-1019" // a cluster's service backends are withdrawn
	PolicyHeld                 Code = "MESH-1021" // the disconnect policy is held
	PolicyResumed              Code = "MESH-1022" // the disconnect policy is no longer held
	ClusterKept                Code = "MESH-1023" // a cluster is restored
	ClientFileBroken           Code = "MESH-1024" // the client file cannot be used any more
	ClientFileWell             Code = "MESH-1025" // the client file can be used again
	ClusterIDConflict          Code = "MESH-1101" // a cluster ID is that of several clusters
	ClusterNameConflict        Code = "MESH-1102" // several clusters answer to one name
	MoreConflicts              Code = "MESH-1103" // there are more conflicts than are listed
	AllFollowed                Code = "MESH-1200" // all resources of the cluster are watched
	BeingRemoved               Code = "MESH-1201" // the cluster is being removed
	FileUnusable               Code = "MESH-1202" // the client file cannot be used
	ConfigurationRefused       Code = "MESH-1203" // the cluster's configuration cannot be used
	ClusterIDTaken             Code = "MESH-1204" // another cluster has the cluster ID
	NotConnectedYet            Code = "MESH-1205" // the cluster was never connected
	ConnectionLost             Code = "MESH-1206" // the connection is lost
	EtcdSilent                 Code = "MESH-1207" // the etcd does not answer
	NoConfiguration            Code = "MESH-1208" // the cluster has no configuration
	NoCanary                   Code = "MESH-1209" // the cluster has not written everything yet
	ListFails                  Code = "MESH-1210" // a list fails
	Copying                    Code = "MESH-1211" // the cluster is being copied
	NotFollowed                Code = "MESH-1212" // some resources are not watched at the moment
	ConfigurationGone          Code = "MESH-1213" // the configuration was deleted or became invalid while connected
	DetailsMissing             Code = "MESH-1214" // details of backends are missing
	StreamBroken               Code = "MESH-1215" // the stream of a resource is broken
	CopyBehind                 Code = "MESH-1216" // a copy is behind
	NotConfirmed               Code = "MESH-1217" // a resource could not be confirmed for a while
	AllRefused                 Code = "MESH-1218" // every entry of a resource is refused
	NoHeartbeat                Code = "MESH-1219" // the cluster's heartbeat is missing
	WithoutContact             Code = "MESH-1220" // the backends are withheld because there is no contact
	SessionOutlivesCertificate Code = "MESH-1221" // the client certificate has expired while connected
	ProtocolBroken             Code = "MESH-1222" // the server breaks etcd's protocol
	InternalError              Code = "MESH-1223" // an internal error ended the work on the cluster
	OverBudget                 Code = "MESH-1224" // the cluster exceeds its budget
	ListTooLong                Code = "MESH-1225" // a list exceeds its time limit
	EventsPaced                Code = "MESH-1226" // events arrive faster than the budget allows
	OverMemory                 Code = "MESH-1227" // the entries of remote clusters have reached the memory limit
	EtcdEmpty                  Code = "MESH-1228" // the cluster's etcd is empty
	EtcdOfAnother              Code = "MESH-1229" // the etcd looks like that of another cluster
	ServerRelease              Code = "MESH-1230" // the release of the cluster's etcd has known faults
	CertificateEnds            Code = "MESH-1231" // a certificate expires within 30 days
	CertificateEndsSoon        Code = "MESH-1232" // a certificate expires within 7 days, or has expired
	NextConnectionFails        Code = "MESH-1233" // the next connection to the cluster's etcd fails
	AddressesOnly              Code = "MESH-1234" // the cluster publishes addresses only
	EtcdFull                   Code = "MESH-1236" // the cluster's etcd has no space left
	CopyStopped                Code = "MESH-1240" // the copy is stopped: our own etcd is nearly full
	ClusterNotAdmitted         Code = "MESH-1260" // the claim policy file does not allow the cluster
	ClusterIDNotPinned         Code = "MESH-1261" // the cluster has another ID than the claim policy file says
	ClusterIDRemembered        Code = "MESH-1262" // the cluster ID belongs to a cluster that is not connected
	ClusterIDUnsteady          Code = "MESH-1263" // the cluster changes its ID all the time
	ClusterFile                Code = "MESH-1301" // the client file was read
	ClusterSession             Code = "MESH-1302" // there is a session
	ClusterNoSession           Code = "MESH-1303" // there is no session
	ClusterConfiguration       Code = "MESH-1304" // the cluster's configuration was read
	ResourceFresh              Code = "MESH-1305" // the resource is known as of now
	ResourceNotFresh           Code = "MESH-1306" // the resource is not known as of now
	ResourceNotExported        Code = "MESH-1307" // the cluster does not export the resource
	HeartbeatSeen              Code = "MESH-1308" // the heartbeat is written
	HeartbeatMissing           Code = "MESH-1309" // the heartbeat is missing
)

// Services.
const (
	ServiceGlobal           Code = "MESH-2000" // the service is global
	ServiceUnknown          Code = "MESH-2100" // no other cluster is known to share the service
	ServiceNowhere          Code = "MESH-2101" // no cluster exports the service
	OwnNotGlobal            Code = "MESH-2102" // not global: the own cluster's service is not
	NotShared               Code = "MESH-2103" // not global: it is not shared
	NotExported             Code = "MESH-2104" // not global: another cluster does not export it
	NoOwnService            Code = "MESH-2105" // not used: the own cluster has no such service
	AffinityLocal           Code = "MESH-2106" // global, with local affinity: others stand by
	AffinityRemote          Code = "MESH-2107" // global, with remote affinity: the own backends stand by
	NoBackends              Code = "MESH-2108" // global, and without backends
	RefusedEverywhere       Code = "MESH-2109" // not global: the entries are refused
	BackendsWithheldBy      Code = "MESH-2110" // global, with backends that are not used as usual
	ServicePortConflict     Code = "MESH-2151" // clusters disagree on the ports of a service
	ServiceAffinityConflict Code = "MESH-2152" // clusters disagree on the session affinity of a service
	PartUsed                Code = "MESH-2201" // the cluster's backends are used
	PartStandsBy            Code = "MESH-2202" // the cluster's backends stand by
	PartNotShared           Code = "MESH-2203" // the cluster does not share its service
	PartNotExported         Code = "MESH-2204" // the cluster does not export the service
	PartUnknown             Code = "MESH-2205" // the services of the cluster are not known as of now
	PartRefused             Code = "MESH-2206" // the cluster's entry is refused
	PartWithheld            Code = "MESH-2207" // the cluster's backends are withheld
	PartEmpty               Code = "MESH-2208" // the cluster shares the service without backends
	PartDemoted             Code = "MESH-2209" // the cluster's backends stand by: it is in doubt
	PartKept                Code = "MESH-2210" // the cluster's backends are used although it is in doubt
	PartsRefused            Code = "MESH-2250" // the cluster may have the service: services of it are refused
	PartBarred              Code = "MESH-2260" // backends of the cluster are not used: no remote can have their addresses
)

// Addresses.
const (
	AddressOwned            Code = "MESH-3000" // the address belongs to a cluster
	AddressInNetwork        Code = "MESH-3001" // the address is in a cluster's network
	AddressContested        Code = "MESH-3002" // several clusters claim the address
	AddressUnclaimed        Code = "MESH-3003" // no cluster claims the address
	AddressUnknown          Code = "MESH-3004" // no cluster is known to claim the address
	AddressConflict         Code = "MESH-3101" // an address is claimed by several clusters
	PodCIDRConflict         Code = "MESH-3102" // pod networks of several clusters overlap
	NodeIPConflict          Code = "MESH-3103" // a node's address is claimed by several clusters
	OwnNetworkClaimed       Code = "MESH-3110" // a remote cluster claims addresses of the own networks
	SpecialUseClaimed       Code = "MESH-3111" // a remote cluster claims addresses for special use
	ForeignNetworkClaimed   Code = "MESH-3112" // a remote cluster claims addresses in the pod network of another one
	ReservedIdentityClaimed Code = "MESH-3113" // a remote cluster publishes addresses with privileged identities
	OwnNetworkBackends      Code = "MESH-3114" // service backends of a remote cluster are inside the own networks
	SpecialUseBackends      Code = "MESH-3115" // service backends of a remote cluster are on addresses for special use
	ClaimWon                Code = "MESH-3201" // the claim counts
	ClaimShorter            Code = "MESH-3202" // the claim is of a shorter prefix
	ClaimLost               Code = "MESH-3203" // the claim lost against one to the same prefix
	ClaimsUnknown           Code = "MESH-3204" // the cluster's claims are not known as of now
	ClaimInOwnNetwork       Code = "MESH-3205" // the claim is inside a network of the own cluster, or contains one
	ClaimSpecialUse         Code = "MESH-3206" // the claim is on addresses for special use
	ClaimInForeignNetwork   Code = "MESH-3207" // the claim is inside a pod network of another cluster
	ClaimReservedIdentity   Code = "MESH-3208" // the claim has a privileged identity
	ClaimRefused            Code = "MESH-3209" // the cluster's entry for the address is refused
	ClaimsUntold            Code = "MESH-3210" // there are more claims than are shown
	ClaimsRefused           Code = "MESH-3211" // the cluster may claim it: addresses of it are refused
	AddressesRefused        Code = "MESH-3301" // a CiliumEndpoint is not published
)

// Identities.
const (
	IdentityKnown            Code = "MESH-4000" // the identity is known
	IdentityReserved         Code = "MESH-4001" // the identity is reserved
	IdentityNowhere          Code = "MESH-4002" // no cluster has published the identity
	IdentityUnknown          Code = "MESH-4003" // no cluster is known to have published the identity
	IdentityRangeConflict    Code = "MESH-4101" // a cluster uses identities outside of its range
	IdentityTwice            Code = "MESH-4102" // equal labels have several identities in one cluster
	IdentityOutOfRange       Code = "MESH-4201" // an identity is used that is outside the cluster's range
	MappingOutOfRange        Code = "MESH-4202" // a mapping is outside the cluster's range
	ReferenceWithoutMapping  Code = "MESH-4203" // an identity without a mapping is in use
	ReferenceToOtherMapping  Code = "MESH-4204" // an identity is used for other labels than those of its mapping
	MappingUnused            Code = "MESH-4205" // no node uses an identity
	PublishedWithoutNode     Code = "MESH-4206" // addresses are published with an identity that no node holds
	IdentitiesWithoutNodes   Code = "MESH-4207" // no node holds a reference of any identity
	LabelsWithSeveralNumbers Code = "MESH-4208" // labels have several identities
	IdentityUnreadable       Code = "MESH-4209" // a key of the identities cannot be read
	IdentitiesRunOut         Code = "MESH-4210" // a cluster's identities run out
	LabelsInUseTwice         Code = "MESH-4211" // nodes use several identities for the same labels
	NumberGivenAway          Code = "MESH-4212" // a CiliumIdentity is not published: an agent allocated its number for other labels
	MappingRead              Code = "MESH-4301" // the mapping was read
	MappingRefused           Code = "MESH-4302" // the mapping is refused
	MappingUnknown           Code = "MESH-4303" // the identities of the cluster are not known as of now
	MappingsRefused          Code = "MESH-4350" // the cluster may have it: identities of it are refused
)

// Nodes.
const (
	NodeKnown       Code = "MESH-5000" // the node is known
	NodeNotAsOfNow  Code = "MESH-5001" // the node is known as of an earlier time
	NodeAddressLost Code = "MESH-5002" // an address of the node counts as another's
	NodeNowhere     Code = "MESH-5003" // there is no such node
	NodeUnknown     Code = "MESH-5004" // the node is not known
	NodeRead        Code = "MESH-5201" // the node was read
	NodeClaimCounts Code = "MESH-5202" // the address counts as the node's
	NodeClaimLost   Code = "MESH-5203" // the address counts as another's
	NodesRefused    Code = "MESH-5250" // the cluster may have it: nodes of it are refused
	NodeRefused     Code = "MESH-5301" // a CiliumNode cannot be published as it is
	AgentsWriteToo  Code = "MESH-5302" // nodes and addresses are not published, since agents write their own
)

// Configurations.
const (
	ClientFileMisnamed        Code = "MESH-6001" // a client file has a name that is no cluster's
	ClientFileUnreadable      Code = "MESH-6002" // a possible client file cannot be read
	ClientFileNoYAML          Code = "MESH-6003" // a client file is no YAML with options
	ClientFileOption          Code = "MESH-6004" // a client file has an option that is not understood
	ClientFileEndpoints       Code = "MESH-6005" // the endpoints of a client file cannot be used
	ClientFileUser            Code = "MESH-6006" // a user without a password, or a password without a user
	FileMissing               Code = "MESH-6007" // a file is missing
	FileForbidden             Code = "MESH-6008" // a file may not be read
	AuthoritiesUnusable       Code = "MESH-6009" // the authorities of a client file cannot be used
	CertificateAlone          Code = "MESH-6010" // a client certificate without a key, or a key without a certificate
	CertificateOfOtherKey     Code = "MESH-6011" // a key does not belong to the client certificate
	CertificateUnusable       Code = "MESH-6012" // the client certificate or its key cannot be used
	CertificateExpired        Code = "MESH-6013" // the client certificate has expired
	CertificateNotYetValid    Code = "MESH-6014" // the client certificate is not valid yet
	CertificateExpiresSoon    Code = "MESH-6015" // the client certificate expires soon
	AuthoritiesExpired        Code = "MESH-6016" // no authority of a client file is valid
	AuthoritiesExpireSoon     Code = "MESH-6017" // the last authority of a client file expires soon
	EndpointPlain             Code = "MESH-6018" // a connection is not encrypted
	ServerNotVerified         Code = "MESH-6019" // a server's certificate is not verified
	SeveralEndpoints          Code = "MESH-6020" // a client file has several endpoints
	SecretReadable            Code = "MESH-6021" // all users of this machine can read a secret
	SystemAuthorities         Code = "MESH-6022" // the system's authorities verify the server
	SameContents              Code = "MESH-6023" // two client files have the same contents
	OwnClusterFile            Code = "MESH-6024" // a client file has the name of the own cluster
	UnusualUser               Code = "MESH-6025" // the user of a client file is not one of Cilium's users
	CertificateNotForClients  Code = "MESH-6026" // the client certificate is not for clients
	NamesDifferInCase         Code = "MESH-6027" // the names of two clusters differ in upper and lower case only
	EndpointHostImpossible    Code = "MESH-6028" // the host of an endpoint can be no host
	EndpointIsAddress         Code = "MESH-6029" // an endpoint with TLS is an address
	ClientFileOverlooked      Code = "MESH-6030" // a file looks like a client file, but no agent reads it
	SeveralDocuments          Code = "MESH-6031" // a client file has several YAML documents
	EtcdShared                Code = "MESH-6101" // several clusters are in one etcd
	HostUnknown               Code = "MESH-6201" // the host of an endpoint is not known
	ResolverFails             Code = "MESH-6202" // the host of an endpoint cannot be looked up
	ConnectionRefused         Code = "MESH-6203" // nothing listens at an endpoint
	ConnectionUnanswered      Code = "MESH-6204" // nothing answers at an endpoint
	ConnectionNoRoute         Code = "MESH-6205" // there is no route to an endpoint
	ConnectionFails           Code = "MESH-6206" // a connection cannot be made
	SomeAddressesFail         Code = "MESH-6207" // some addresses of an endpoint do not answer
	ServerWithoutTLS          Code = "MESH-6211" // the server does not speak TLS
	ServerSilent              Code = "MESH-6212" // the endpoint accepts connections and does not answer
	HandshakeFails            Code = "MESH-6213" // the TLS handshake fails
	ServerNeedsTLS            Code = "MESH-6214" // the server does not answer plain text
	ServerWithoutHTTP2        Code = "MESH-6215" // the server does not speak HTTP/2
	ServerAuthorityUnknown    Code = "MESH-6221" // an unknown authority has signed the server's certificate
	ServerNameOther           Code = "MESH-6222" // the server's certificate is for other names
	ServerCertificateInvalid  Code = "MESH-6223" // the server's certificate has expired, or is not valid yet
	ServerCertificateSoon     Code = "MESH-6224" // the server's certificate expires soon
	ServerCertificateUnfit    Code = "MESH-6225" // the server's certificate cannot be accepted
	ClientCertificateDemanded Code = "MESH-6231" // the server demands a client certificate
	ClientCertificateRefused  Code = "MESH-6232" // the server refuses our client certificate
	EtcdUserRefused           Code = "MESH-6241" // etcd refuses our credentials
	EtcdNoQuorum              Code = "MESH-6242" // etcd answers and cannot read
	EtcdUnanswered            Code = "MESH-6243" // etcd does not answer in time
	EtcdFails                 Code = "MESH-6244" // etcd answers with an error
	EtcdAlarm                 Code = "MESH-6245" // etcd has raised an alarm
	RightsMissing             Code = "MESH-6251" // our user may not read required keys
	EtcdOfOther               Code = "MESH-6252" // this may be the etcd of another cluster
	ReadFails                 Code = "MESH-6253" // reads fail
	ExportsRightsMissing      Code = "MESH-6254" // our user may not read the service exports
	HeartbeatAbsent           Code = "MESH-6261" // there is no heartbeat
	HeartbeatOld              Code = "MESH-6262" // the heartbeat is old
	HeartbeatAhead            Code = "MESH-6263" // the heartbeat is in the future
	ConfigurationMissing      Code = "MESH-6271" // there is no cluster configuration
	ConfigurationUnreadable   Code = "MESH-6272" // the cluster configuration cannot be read
	ConfigurationInvalid      Code = "MESH-6273" // the cluster configuration cannot be used
	MaxClustersDiffer         Code = "MESH-6274" // two clusters are of meshes of different sizes
	CanaryMissing             Code = "MESH-6275" // the cluster has not written everything
	WouldAdd                  Code = "MESH-6301" // a cluster would be added
	WouldChange               Code = "MESH-6302" // a cluster's client file would change
	WouldRemove               Code = "MESH-6303" // a cluster would be removed
	WouldChangeID             Code = "MESH-6304" // a cluster would change its ID
	AgentOfOtherNames         Code = "MESH-6305" // the running agent is of another cluster
	PolicyFileUnusable        Code = "MESH-6320" // the claim policy file cannot be used
	PolicyClusterUnknown      Code = "MESH-6321" // there is a setting for a cluster without a client file
	PolicyNotAdmitted         Code = "MESH-6322" // the claim policy file would not allow a cluster
	PolicyPinMismatch         Code = "MESH-6323" // the claim policy file gives a cluster another ID than it has
	PolicyWouldRefuse         Code = "MESH-6324" // the claim policy file would refuse existing entries
	PolicyNotCompared         Code = "MESH-6325" // the effect of the claim policy file is not known
)

// The agent.
const (
	FileIgnored                 Code = "MESH-7001" // a file of the mesh directory is ignored
	FileTaken                   Code = "MESH-7002" // a file of the mesh directory is no longer ignored
	DirectoryUnreadable         Code = "MESH-7003" // the mesh directory cannot be read
	DirectoryReadable           Code = "MESH-7004" // the mesh directory can be read again
	DescriptionBroken           Code = "MESH-7005" // some of the description of the own cluster cannot be used
	DescriptionWell             Code = "MESH-7006" // the whole description of the own cluster can be used again
	LogLevelChanged             Code = "MESH-7007" // the level of the log was changed
	ContentsNotCompared         Code = "MESH-7010" // contents of client files are not compared with the running agent
	ReadyWithout                Code = "MESH-7011" // the agent is ready without some clusters
	ListenerCertificateEnds     Code = "MESH-7012" // a certificate of the agent's listeners expires within 30 days
	ListenerCertificateEndsSoon Code = "MESH-7013" // a certificate of the agent's listeners expires within 7 days, or has expired
	ListenerFilesUnusable       Code = "MESH-7014" // the certificate files of the agent's listeners cannot be used
	OwnEtcdFull                 Code = "MESH-7020" // copying is stopped: the own etcd is nearly full
	OwnEtcdRoom                 Code = "MESH-7021" // the own etcd has room
	OwnEtcdUnknown              Code = "MESH-7022" // the own etcd does not report how full it is
	AgentSilent                 Code = "MESH-7040" // Prometheus gets no metrics from an agent
	AgentRestarts               Code = "MESH-7041" // an agent restarts repeatedly
	NobodyLeads                 Code = "MESH-7042" // no process is the leader
	WritesRefused               Code = "MESH-7043" // the own kvstore refuses writes
	WritesBehind                Code = "MESH-7044" // keys to publish are not in the own kvstore
	KubernetesRefuses           Code = "MESH-7045" // requests to the Kubernetes API fail
	ClientsRefused              Code = "MESH-7046" // clients are refused, since there are too many
	UpdatesRejected             Code = "MESH-7047" // xDS clients reject resources
	NotReadyToServe             Code = "MESH-7048" // an agent cannot answer all clients, because it does not know every cluster
	AllocationsFail             Code = "MESH-7049" // identities cannot be allocated
	WorkFailed                  Code = "MESH-7060" // an internal error ended the work for one client, question or object
	ImportsLeftOut              Code = "MESH-7070" // services that clusters export are not imported
	EndpointsRefused            Code = "MESH-7071" // backends of remote clusters are not in EndpointSlices, because of their addresses
)
