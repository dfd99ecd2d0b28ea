package members

import (
	"fmt"
	"strings"
)

// Hints returns commands for a person to try.
func (m *Mesh) Hints() string {
	first, second := m.Clusters[0], m.Clusters[1]
	agent := func(c *Cluster, what string) string {
		return fmt.Sprintf("%s %s --socket %s", m.Program, what, c.Agents[0].Socket)
	}
	lines := []string{
		fmt.Sprintf("%d clusters without Cilium, below %s.", len(m.Clusters), m.Dir),
		"",
		"Try in another terminal:",
		"  " + agent(first, "status --wait"),
		"  " + agent(first, "get nodes"),
		"  " + agent(first, "describe service "+Namespace+"/web"),
		"  " + agent(first, "lookup "+second.PodAddress(0, 0)),
		"  " + fmt.Sprintf("%s status --socket %s", m.Program, first.Mirrors[0].Socket),
		"",
		"Then let the backends of web in " + first.Name + " go, and see who takes over:",
		fmt.Sprintf("  sed -i 's/ready: true, serving: true/ready: false, serving: false/' %s/services.yaml", first.Manifests()),
		"  " + agent(first, "describe service "+Namespace+"/web"),
		"",
		"Or kill who does the work; with --standbys 1 another one takes over within 25 s, and nothing is lost:",
		fmt.Sprintf("  pkill -9 -f %s/operate1.sock", first.Dir),
		fmt.Sprintf("  %s status --socket %s", m.Program, first.Operators[0].Socket),
		"",
		"Or take a cluster away, and give it back:",
		fmt.Sprintf("  mv %s/%s %s/", first.Remotes(), second.Name, first.Dir),
		"",
		"What every process says is in " + m.Dir + "/*/*.log. Ctrl-C here ends everything.",
		"",
	}
	return strings.Join(lines, "\n")
}
