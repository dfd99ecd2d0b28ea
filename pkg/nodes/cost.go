package nodes

// What the parts of a node take in memory, about, with what follows from them: claims
// on addresses, and networks that are compared with those of others.
const (
	costNode    = 1024
	costAddress = 512
	costNetwork = 1024
	costLabel   = 64 // beside its text
)

// Cost is how many bytes a node takes in memory, with what follows from it in the
// tables, about.
func (n *Node) Cost() int {
	cost := costNode + costAddress*(len(n.Addresses)+len(n.HealthIPs)+len(n.IngressIPs)) + costNetwork*len(n.PodCIDRs)
	for _, texts := range []map[string]string{n.Labels, n.Annotations} {
		for key, value := range texts {
			cost += costLabel + len(key) + len(value)
		}
	}
	return cost
}
