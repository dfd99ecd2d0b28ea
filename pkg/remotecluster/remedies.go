package remotecluster

// What to do about a cluster that does not say of itself what it should. They
// stand behind what is wrong.
const (
	// WhoseEtcd is for a cluster without a configuration.
	WhoseEtcd = "is this the etcd of that cluster (or of its copies), does the file have the name of that cluster, and " + WriterRuns
	// WriterRuns is for what a cluster's writer has not written.
	WriterRuns = "does what writes it run: clustermesh-apiserver, mesh-agent operate, or the mirror of a copy?"
	// CheckWriter is for a value that makes no sense.
	CheckWriter = "check what writes it in that cluster"
)
