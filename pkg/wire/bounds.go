package wire

// Bounds of the contents of one entry. Each is several times the limit of Kubernetes, or the amounts in
// practice. An entry beyond a bound is rejected for [ReasonTooLarge] before more than the bound is built. In
// addition, the [meter] bounds the memory of an entry by its size.
const (
	// MaxName is the length of a name in bytes. A namespace and a name in it have at most 317.
	MaxName = 1024
	// MaxValue is the size of a value in bytes, unpacked where it is compressed.
	// etcd takes requests of 1.5 MiB by default.
	MaxValue = 2 << 20

	maxNesting = 16 // of JSON; the format needs 4

	maxLabels      = 1024 // also annotations; the labels of a selector
	maxNamedPorts  = 512  // of one address
	maxNodeAddrs   = 256
	maxPodCIDRs    = 256     // of each kind; each is a claim on a network
	maxBackends    = 1 << 16 // of a service; its frontends as well
	maxPorts       = 512     // of one backend, slice or export; Kubernetes allows 100 for a slice
	maxIPFamilies  = 8       // there are 2
	maxEndpoints   = 4096    // of one slice; Kubernetes allows 1000
	maxAddresses   = 512     // of one endpoint; Kubernetes allows 100
	maxHintedZones = 64      // of one endpoint; Kubernetes allows 8
)

// bounded checks the sizes of an entry, before anything is read from it.
func bounded(name string, value []byte) error {
	if err := atMost(MaxName, len(name), "bytes in the name of its key"); err != nil {
		return err
	}
	return atMost(MaxValue, len(value), "bytes")
}

// atMost rejects an entry with more of something than the bound.
func atMost(bound, n int, what string) error {
	if n > bound {
		return reject(ReasonTooLarge, "it has %d %s, at most %d are read", n, what, bound)
	}
	return nil
}

// amount is a number of parts of an entry, with its bound.
type amount struct {
	n, bound int
	what     string
}

// within checks amounts, in this order.
func within(amounts ...amount) error {
	for _, a := range amounts {
		if err := atMost(a.bound, a.n, a.what); err != nil {
			return err
		}
	}
	return nil
}
