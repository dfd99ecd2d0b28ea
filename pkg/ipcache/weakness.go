package ipcache

import "fmt"

// Weakness says in words by which rule a claim is weaker than another one to
// the same prefix.
func (e *Entry) Weakness(strong *Entry) string {
	switch e.Lost(strong) {
	case RuleSource:
		return fmt.Sprintf("weaker source: %s precedes %s", strong.Source(), e.Source())
	case RuleKind:
		return fmt.Sprintf("%s precedes %s", strong.Kind().phrase(), e.Kind().phrase())
	case RuleCluster:
		if a, b := strong.Cluster(), e.Cluster(); a.ID == b.ID {
			return fmt.Sprintf("cluster %s precedes %s", a.Name, b.Name)
		}
		return fmt.Sprintf("cluster ID %d precedes %d", strong.Cluster().ID, e.Cluster().ID)
	default:
		if strong.NodeName() == "" {
			return "the same cluster claims it twice, with other host bits"
		}
		return fmt.Sprintf("node %s precedes %s", strong.NodeName(), e.NodeName())
	}
}

// phrase names the kind within a sentence.
func (k Kind) phrase() string {
	switch k {
	case KindHost:
		return "a host entry"
	case KindCIDR:
		return "a CIDR"
	case KindNode:
		return "a node's address"
	case KindPodCIDR:
		return "a pod CIDR"
	case KindHealth:
		return "a health address"
	case KindIngress:
		return "an ingress address"
	default:
		return "a " + k.String()
	}
}
