package contents

import "strconv"

// Names depend on the index alone, not on the seed or the sizes, so that clusters of any size have services in common.

func namespaces() []string {
	return []string{
		"default", "shop", "payments", "search", "media", "mail", "ledger", "orders",
		"identity", "catalog", "shipping", "support", "analytics", "ingest", "billing", "monitoring",
	}
}

func apps() []string {
	return []string{
		"web", "cart", "checkout", "frontend", "gateway", "worker", "cache", "queue", "db", "scheduler",
		"notifier", "ranker", "resizer", "auditor", "importer", "exporter", "session", "profile", "pricing", "stock",
	}
}

func zones() []string { return []string{"zone-a", "zone-b", "zone-c"} }

func instanceTypes() []string { return []string{"m6.large", "m6.xlarge", "c6.2xlarge", "r6.xlarge"} }

// pick chooses by index, round robin.
func pick(words []string, i int) string { return words[i%len(words)] }

// workloadNamespace is the namespace of workload w.
func workloadNamespace(w int) string { return pick(namespaces(), w) }

// workloadApp is the application name of workload w, unique in its namespace.
func workloadApp(w int) string {
	words := apps()
	n := w / len(namespaces())
	name := words[(n+w%len(namespaces()))%len(words)]
	if round := n / len(words); round > 0 {
		name += "-" + strconv.Itoa(round+1)
	}
	return name
}

// serviceName is the name of service s of a cluster, which selects workload w: of four services two are common to all
// clusters, one to every second cluster, and one is in this cluster only, so that every namespace has services of each
// kind.
func serviceName(c Cluster, s, w int) string {
	name := workloadApp(w)
	if round := s / max(c.Identities, 1); round > 0 {
		name += "-v" + strconv.Itoa(round+1)
	}
	switch (s + s/len(namespaces())) % 4 {
	case 1:
		return name + "-" + pick([]string{"even", "odd"}, int(c.ID))
	case 3:
		return name + "-" + c.Name
	}
	return name
}

// podAlphabet has the characters of Kubernetes' random names.
const podAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// suffix writes n as a name part of the given length; different numbers below
// 27^length give different parts.
func suffix(n uint64, length int) string {
	size := uint64(1)
	for range length {
		size *= uint64(len(podAlphabet))
	}
	n = n % size * 1_000_003 % size
	out := make([]byte, length)
	for i := range out {
		out[i] = podAlphabet[n%uint64(len(podAlphabet))]
		n /= uint64(len(podAlphabet))
	}
	return string(out)
}

// port is one port of a workload.
type port struct {
	name      string
	protocol  string
	container uint16
	service   uint16
}

// workloadPorts are the ports that the pods of workload w listen on.
func workloadPorts(w int) []port {
	switch w % 5 {
	case 0:
		return []port{{"http", "TCP", 8080, 80}}
	case 1:
		return []port{{"grpc", "TCP", 9090, 443}, {"metrics", "TCP", 9100, 9100}}
	case 2:
		return []port{{"", "TCP", 5432, 5432}}
	case 3:
		return []port{{"dns", "UDP", 5353, 53}, {"dns-tcp", "TCP", 5353, 53}}
	default:
		return []port{{"https", "TCP", 8443, 443}}
	}
}
