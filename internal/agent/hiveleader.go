package agent

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
)

// leader is who does the work of a mode while all others stand by; nil in a mode
// without one.
type leader interface {
	// Leads tells whether this process does it.
	Leads() bool
	// Bootstrap is how long it took in this term until everything was written; 0
	// before that, and while another process leads.
	Bootstrap() time.Duration
}

// showLeader registers who leads, and how long it took, as metrics (wire.md §6.2).
func showLeader(m config.Mode, l leader, reg prometheus.Registerer) error {
	if l == nil {
		return nil
	}
	leads := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_agent_leader_election_master_status", Help: "1 while this process leads, of those that stand by for each other.",
		ConstLabels: prometheus.Labels{"name": string(m)},
	}, func() float64 {
		if l.Leads() {
			return 1
		}
		return 0
	})
	bootstrap := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_agent_" + string(m) + "_bootstrap_seconds",
		Help: "How long it took from the lead until everything was written; 0 before that, and while another process leads.",
	}, func() float64 { return l.Bootstrap().Seconds() })
	return errors.Join(reg.Register(leads), reg.Register(bootstrap))
}
