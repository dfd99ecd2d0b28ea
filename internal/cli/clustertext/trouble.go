package clustertext

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// Story is what is wrong with a cluster, on one line.
func Story(c *api.Cluster, now time.Time) string {
	text := explain.Coded(c.Code, cmp.Or(c.Message, FreshnessText(*c)))
	if c.Failures > 0 && c.LastFailure != nil && !c.Connected {
		text += fmt.Sprintf(" (%s, the last %s ago)", printer.Count(c.Failures, "failure"), printer.Duration(now.Sub(*c.LastFailure)))
	}
	return text
}

// Trouble is a kind of thing that is wrong with a cluster, the worst first.
type Trouble int

const (
	troubleFailed Trouble = iota
	troubleConnecting
	troubleLost
	TroubleDegraded
	troubleStale
	troubleSyncing
	troubleRemoving
	NoTrouble
)

// TroubleOf classifies a cluster.
func TroubleOf(c *api.Cluster) Trouble {
	switch {
	case c.State == "failed":
		return troubleFailed
	case c.State == "connecting":
		return troubleConnecting
	case c.State == "syncing":
		return troubleSyncing
	case c.State == "removing":
		return troubleRemoving
	case !c.Connected:
		return troubleLost
	case c.State != "ready" || !c.Ready:
		return TroubleDegraded
	case !c.Fresh():
		return troubleStale
	default:
		return NoTrouble
	}
}

// text is what is said of a kind of trouble.
func (t Trouble) text() (title, word, remedy string) {
	const checkPath = "'mesh-agent troubleshoot CLUSTER' finds out from this node which step fails: DNS, firewall, TLS, the certificates " +
		"of both sides, rights, the etcd itself. "
	switch t {
	case troubleFailed:
		return "Cannot be used as configured", "failed",
			"Correct what the message names, here or in that cluster. The agent tries again by itself, and at once when the client file changes."
	case troubleConnecting:
		return "No connection yet", "connecting",
			checkPath + "The agent keeps trying."
	case troubleLost:
		return "Connection lost", "lost",
			checkPath + "The agent keeps trying; meanwhile what was known is kept and served."
	case TroubleDegraded:
		return "Connected, but not well", "degraded",
			"Look at the etcd of that cluster and at what writes there: clustermesh-apiserver, mesh-agent operate, or the mirror of a copy. What is known is served meanwhile."
	case troubleStale:
		return "Not known to be up to date", "stale",
			"What is known is served, but the remote may have moved on. If it stays so, look at the load and the latency of that etcd."
	case troubleSyncing:
		return "First copy under way", "syncing",
			"Wait: 'mesh-agent status --wait --for=synced' follows it. If it does not move on, look at what publishes that cluster's state (clustermesh-apiserver, mesh-agent operate) or copies it (mesh-agent mirror)."
	case troubleRemoving:
		return "Being removed", "removing",
			"Nothing to do: it disappears when all its entries are withdrawn."
	default:
		return "Well", "well", "Nothing to do."
	}
}

// Title is the heading of clusters with this trouble.
func (t Trouble) Title() string {
	title, _, _ := t.text()
	return title
}

// Word is the kind in one word.
func (t Trouble) Word() string {
	_, word, _ := t.text()
	return word
}

// Remedy says what to do about it.
func (t Trouble) Remedy() string {
	_, _, remedy := t.text()
	return remedy
}

// Freshness sums up the freshness of a cluster: the worst of its resources but
// the optional ones, and the greatest age, empty when nothing
// was ever known.
func Freshness(c api.Cluster) (state, age string) {
	worst, oldest := "synced", -1.0
	for _, r := range resourceRows(&c) {
		if r.optional {
			continue
		}
		if severity(r.fresh.State) > severity(worst) {
			worst = r.fresh.State
		}
		if r.fresh.AgeSeconds != nil {
			oldest = max(oldest, *r.fresh.AgeSeconds)
		}
	}
	if oldest < 0 {
		return worst, ""
	}
	return worst, printer.Seconds(oldest)
}

// FreshnessText is freshness in one text.
func FreshnessText(c api.Cluster) string {
	state, age := Freshness(c)
	return strings.TrimSpace(state + " " + age)
}

func severity(freshness string) int {
	switch freshness {
	case "synced":
		return 0
	case "syncing":
		return 1
	case "stale":
		return 2
	default:
		return 3
	}
}

// Sum adds up the counts of all resources.
func Sum(of api.ByResource[int]) int {
	total := 0
	for _, n := range of.All() {
		total += *n
	}
	return total
}

func capabilities(c api.Capabilities) []string {
	var parts []string
	flag := func(name string, on *bool) {
		if on != nil {
			parts = append(parts, name+"="+strconv.FormatBool(*on))
		}
	}
	flag("syncedCanaries", c.SyncedCanaries)
	flag("cached", c.Cached)
	if c.MaxConnectedClusters != nil {
		parts = append(parts, fmt.Sprintf("maxConnectedClusters=%d", *c.MaxConnectedClusters))
	}
	flag("serviceExportsEnabled", c.ServiceExportsEnabled)
	if c.EndpointSlicesExportMode != nil && *c.EndpointSlicesExportMode != "" {
		parts = append(parts, "endpointSlicesExportMode="+*c.EndpointSlicesExportMode)
	}
	return parts
}

// ClusterColor is the color of a cluster's state.
func ClusterColor(c api.Cluster) printer.Color {
	switch c.State {
	case "ready":
		return printer.Green
	case "syncing", "removing":
		return printer.Yellow
	default:
		return printer.Red
	}
}

// AgentColor is the color of an agent's state.
func AgentColor(st *api.Status) printer.Color {
	switch st.State {
	case api.StateReady:
		return printer.Green
	case api.StateStarting:
		return printer.Yellow
	default:
		return printer.Red
	}
}
