package reasons

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// Cluster explains the state of a cluster.
func Cluster(c remotecluster.Status) api.Explanation {
	x := api.Explanation{Verdict: verdictf(c.Code, "%s: %s", c.State, c.Message)}
	if c.Message == "" {
		x.Verdict.Text = string(c.State)
	}
	add := func(code codes.Code, asOf time.Time, format string, args ...any) {
		step := api.Step{Code: code, Cluster: c.Name, Text: fmt.Sprintf(format, args...), Keys: []api.Key{}}
		if !asOf.IsZero() {
			step.AsOf = new(asOf.UTC())
		}
		x.Steps = append(x.Steps, step)
	}
	if c.ConfigFile != "" {
		add(codes.ClusterFile, time.Time{}, "client file %s: endpoints %s", c.ConfigFile, strings.Join(c.Endpoints, ", "))
	}
	if c.Connected {
		add(codes.ClusterSession, c.LastSuccess, "connected since %s, to etcd cluster %s", c.ConnectedSince.UTC().Format(time.RFC3339), c.EtcdClusterID)
	} else {
		add(codes.ClusterNoSession, time.Time{}, "not connected; %s: %s", printer.Count(c.Failures, "failure"), c.LastError)
	}
	if c.Capabilities != nil {
		add(codes.ClusterConfiguration, time.Time{}, "its configuration gives it the ID %d", c.ID)
	}
	for _, r := range slices.Sorted(maps.Keys(c.Families)) {
		src := c.Families[r]
		switch f := src.Freshness; {
		case !src.Exported && src.Count == 0:
			add(codes.ResourceNotExported, f.AsOf, "%s are not exported", r)
		case f.State == remotecluster.FreshnessSynced:
			text := fmt.Sprintf("%d %s", src.Count, r)
			if refused := refusedText(src); refused != "" {
				text += ", refused are " + refused
			}
			add(codes.ResourceFresh, f.AsOf, "%s", text)
		default:
			text := fmt.Sprintf("%d %s, %s", src.Count, r, f.State)
			if src.Why != "" {
				text += ": " + src.Why
			}
			add(codes.ResourceNotFresh, f.AsOf, "%s", text)
		}
	}
	switch hb := c.Heartbeat; {
	case !hb.Stale && !hb.Seen.IsZero():
		add(codes.HeartbeatSeen, hb.Seen, "the heartbeat was seen")
	case c.Connected:
		add(codes.HeartbeatMissing, hb.Seen, "no heartbeat for %s", hb.Age.Round(time.Second))
	}
	return x
}
