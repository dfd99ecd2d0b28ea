package findings

// Code names a finding for good: it is never given to another one. The first
// digit says what it is about: 1 clusters, 3 addresses.
type Code string

// The codes of what is found today.
const (
	CodeClusterAdded        Code = "MESH-1001" // a client file appeared
	CodeClusterRemoved      Code = "MESH-1002" // a client file is gone, and so is all that its cluster had brought
	CodeClusterConnected    Code = "MESH-1003" // a session began
	CodeClusterDisconnected Code = "MESH-1004" // a session ended; what was known is kept
	CodeClusterReady        Code = "MESH-1005" // everything of the cluster is visible and followed
	CodeClusterSyncing      Code = "MESH-1006" // the first lists run
	CodeClusterDegraded     Code = "MESH-1007" // what is known is kept, and something is wrong
	CodeClusterFailed       Code = "MESH-1008" // somebody has to change something
	CodeClusterConnecting   Code = "MESH-1009" // nothing is known yet, and there is no session
	CodeClusterRemoving     Code = "MESH-1010" // the entries are being withdrawn
	CodeClusterError        Code = "MESH-1011" // an attempt or a session ended in another error than the one before
	CodeClusterIDChanged    Code = "MESH-1012" // the cluster has another ID than before
	CodeEtcdChanged         Code = "MESH-1013" // another etcd answers behind the cluster's endpoints
	CodeEntriesRejected     Code = "MESH-1014" // entries of the cluster are refused
	CodeEntriesAccepted     Code = "MESH-1015" // none of them is refused any more
	CodeBackendsWithheld    Code = "MESH-1016" // without contact for too long: the service backends are not used
	CodeBackendsBack        Code = "MESH-1017" // they are used again
	CodeClusterIDConflict   Code = "MESH-1101" // a cluster ID that more than one cluster has
	CodeAddressConflict     Code = "MESH-3101" // a prefix that more than one cluster claims
)
