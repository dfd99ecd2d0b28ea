package services

// About how much memory the parts of services take. Each backend is stored twice: as its cluster exports it, and in the
// global service.
const (
	costService  = 1024
	costBackend  = 240
	costEndpoint = 64 + costBackend
	costPort     = 48 // in addition to its texts
	costLabel    = 64
)

// Cost returns about how many bytes a service takes in memory, with the data derived from it in the tables.
func (s *Service) Cost() int {
	cost := costService + costBackend*len(s.Backends) + costPorts(s.Ports)
	var last []Port
	for i := range s.Backends {
		b := &s.Backends[i]
		cost += len(b.Hostname) + len(b.Zone) + len(b.Node)
		if len(b.Ports) > 0 && (len(last) != len(b.Ports) || &b.Ports[0] != &last[0]) { // not shared with the previous one
			cost += costPorts(b.Ports)
			last = b.Ports
		}
	}
	return cost + costTexts(s.Labels)
}

// Cost returns about how many bytes the service takes in memory.
func (g *Global) Cost() int { return g.CostBeside(nil) }

// CostBeside returns about how many bytes this version of a service takes in addition to another version: parts that
// are the same in both are stored once. For nil it returns 0.
func (g *Global) CostBeside(other *Global) (cost int) {
	if g == nil {
		return 0
	}
	for _, part := range g.Parts {
		if other.Part(part.Cluster) != part {
			cost += part.Cost()
		}
	}
	return cost
}

// Cost returns about how many bytes a slice takes in memory, with the data derived from it in the tables.
func (s *Slice) Cost() int {
	cost := costService + costEndpoint*len(s.endpoints) + costPorts(s.ports) + 2*s.labels.Size()
	for range s.labels.All() {
		cost += costLabel
	}
	for i := range s.endpoints {
		if h := s.endpoints[i].hostname; h != nil {
			cost += len(*h)
		}
	}
	return cost
}

// Cost returns about how many bytes an export takes in memory, with the data derived from it in the tables.
func (e *Export) Cost() int {
	d := &e.Details
	cost := costService + costPorts(e.Ports) + costTexts(d.Labels) + costTexts(d.Annotations) + costPort*len(d.AppProtocols)
	for _, text := range d.AppProtocols {
		cost += len(text)
	}
	return cost
}

// costTexts returns the cost of a map whose texts are not shared.
func costTexts(texts map[string]string) (cost int) {
	for key, value := range texts {
		cost += costLabel + len(key) + len(value)
	}
	return cost
}

func costPorts(ports []Port) int {
	cost := costPort * len(ports)
	for _, p := range ports {
		cost += len(p.Name) + len(p.Protocol)
	}
	return cost
}
