package status

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/lookup"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

// TestWaitingHasTheKVStore: for each goal, the command also waits for the own cluster, unless a cluster is named.
func TestWaitingHasTheKVStore(t *testing.T) {
	t.Parallel()
	st := samples.StatusOf([]api.Cluster{samples.GoodCluster("accra", 2)})
	for goal, c := range map[string]api.Cluster{
		GoalReady: samples.OneOfEach()[2], GoalSynced: samples.OneOfEach()[1], GoalFresh: samples.StaleBy(samples.GoodCluster("home", 1), time.Minute),
	} {
		samples.AddOwn(st, c)
		want := fmt.Sprintf("the local kvstore to be %s (%s)", goal, stateText(&c))
		if got := missingFor(st, goal, ""); got != want {
			t.Errorf("%s: waits for %q, want %q", goal, got, want)
		}
		if got := missingFor(st, goal, "accra"); got != "" {
			t.Errorf("%s of accra: waits for %q", goal, got)
		}
		samples.AddOwn(st, samples.GoodCluster("home", 1))
		if got := missingFor(st, goal, ""); got != "" {
			t.Errorf("%s: waits for %q, though all is well", goal, got)
		}
	}
}

// TestWhoIsNotKeptIsNotWell: a cluster may be ready and fresh, and yet get no traffic by policy.
func TestWhoIsNotKeptIsNotWell(t *testing.T) {
	t.Parallel()
	for _, c := range samples.Policed() {
		if got, want := c.Well(), c.Name == "accra"; got != want {
			t.Errorf("%s is well: %t, want %t", c.Name, got, want)
		}
	}
	want := "1 of 1 cluster to be fresh: denver (its service backends are not used as usual yet)"
	if got := missingFor(samples.StatusOf(samples.Policed()[3:]), GoalFresh, ""); got != want {
		t.Errorf("waits for %q, want %q", got, want)
	}
}

func TestStatusText(t *testing.T) {
	t.Parallel()
	away := func(c api.Cluster) api.Cluster {
		return samples.StaleBy(samples.Failing(c, "degraded", "not connected: connection refused"), time.Hour)
	}
	many := samples.ManyClusters("cluster-%03d", func(i int, c api.Cluster) api.Cluster {
		if i%100 == 50 {
			return away(c)
		}
		return c
	})
	// Names of 32 characters, and the largest possible numbers.
	wide := samples.ManyClusters("a-cluster-with-quite-a-long-n%03d", func(i int, c api.Cluster) api.Cluster {
		c.Counts.IPs, c.State = 12345678, "connecting"
		return samples.StaleBy(samples.Failing(c, "connecting", "not connected: connection refused"), 364*24*time.Hour+time.Duration(i)*time.Hour)
	})
	three := []api.Cluster{samples.GoodCluster("accra", 2), samples.GoodCluster("cairo", 3), samples.NeverSeen("delhi", "connecting", "dial tcp 10.0.0.1:2379: connect: connection refused")}
	terminal := printer.Style{Width: 80}
	heartbeat, home := 3.2, samples.GoodCluster("home", 1)
	home.HeartbeatAgeSeconds = &heartbeat
	stale, weak, nowhere := samples.StaleBy(home, time.Minute), samples.OneOfEach()[6], samples.NeverSeen("home", "connecting", "dial tcp 10.0.0.9:2379: connect: connection refused")
	weak.HeartbeatAgeSeconds = &heartbeat
	impact := api.Impact{
		Clusters: []string{"lagos", "tunis"},
		Loss: api.Loss{
			Only:   api.Losing{Services: 7, Names: []string{"shop/a", "shop/b", "shop/c", "shop/d", "shop/e"}, Backends: 14, Of: 14},
			Partly: api.Losing{Services: 1, Names: []string{"shop/web"}, Backends: 12, Of: 20},
		},
	}
	tests := map[string]struct {
		clusters []api.Cluster
		style    printer.Style
		all      bool
		own      *api.Cluster
		impact   *api.Impact
	}{
		"status-none":           {clusters: nil},
		"status-one":            {clusters: three[:1]},
		"status-well":           {clusters: three[:2], own: &home},
		"status-three":          {clusters: three, own: &nowhere},
		"status-kvstore-stale":  {clusters: three[:1], own: &stale},
		"status-kvstore-weak":   {clusters: three[:1], style: terminal, own: &weak},
		"status-caused":         {clusters: samples.Caused(), impact: &impact},
		"status-caused-narrow":  {clusters: samples.Caused(), style: terminal, impact: &impact},
		"status-each":           {clusters: samples.OneOfEach()},
		"status-terminal":       {clusters: three, style: printer.Style{Color: true, Width: 80}},
		"status-each-terminal":  {clusters: samples.OneOfEach(), style: terminal},
		"status-notices":        {clusters: samples.Noticed(), style: terminal},
		"status-policy":         {clusters: samples.Policed()},
		"status-policy-held":    {clusters: samples.HeldClusters(), style: terminal},
		"status-254":            {clusters: many},
		"status-254-terminal":   {clusters: many, style: terminal},
		"status-254-all":        {clusters: many, style: terminal, all: true},
		"status-254-down":       {clusters: wide, style: terminal},
		"status-254-well":       {clusters: samples.ManyClusters("c%03d", func(_ int, c api.Cluster) api.Cluster { return c }), style: terminal},
		"status-254-well-piped": {clusters: samples.ManyClusters("c%03d", func(_ int, c api.Cluster) api.Cluster { return c })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			st := samples.StatusOf(test.clusters)
			if test.own != nil {
				samples.AddOwn(st, *test.own)
			}
			st.Impact = test.impact
			if err := Write(&out, test.style, Page{Status: st, Now: samples.Now, all: test.all}); err != nil {
				t.Fatal(err)
			}
			samples.Golden(t, name, out.String())
			samples.Fits(t, out.String(), test.style, test.all)
		})
	}
}

// TestTextsOfOthersAreHarmless: no text of a remote cluster reaches a terminal unquoted.
func TestTextsOfOthersAreHarmless(t *testing.T) {
	t.Parallel()
	text := printer.NewFormat(printer.Text)
	const evil = "a\x1b[2Jb"
	c := samples.NeverSeen(evil, "connecting", evil)
	c.Endpoints, c.EtcdClusterID, c.ConfigFile, c.LastError = []string{evil}, evil, evil, evil
	st := samples.StatusOf([]api.Cluster{c})
	st.Agent.Node, st.Agent.Version, st.State = evil, evil, evil
	l := &api.Lookup{
		IP:       "10.0.0.1",
		Match:    &api.IP{Prefix: "10.0.0.1/32", Cluster: evil, Namespace: evil, Pod: evil, Kind: "endpoint"},
		Identity: &api.Identity{Labels: map[string]string{evil: evil}},
		Node:     &api.Node{Cluster: evil, Name: evil},
		Services: []api.ServiceName{{Namespace: evil, Name: evil}},
	}
	nobodys := &api.Lookup{IP: "10.0.0.2", Services: l.Services}
	var out bytes.Buffer
	for _, err := range []error{
		Write(&out, printer.Style{}, Page{Status: st, Now: samples.Now}),
		command.Answer(&out, printer.Style{}, text, &c, func(p *printer.Page) { clustertext.WritePage(p, &c, nil, samples.Now) }),
		command.Answer(&out, printer.Style{}, text, l, func(p *printer.Page) { lookup.Write(p, l, samples.Now) }),
		command.Answer(&out, printer.Style{}, text, nobodys, func(p *printer.Page) { lookup.Write(p, nobodys, samples.Now) }),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	p := printer.NewLine(&out)
	p.Show(evil)
	p.End()
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}

// TestAMissingMeshDirectoryIsNoFileToRename: the remedy for a missing mesh directory does not suggest to rename it.
func TestAMissingMeshDirectoryIsNoFileToRename(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := printer.NewPage(&out, printer.Style{})
	writeIgnored(p, "/mesh/", []api.Ignored{{File: "/mesh", Reason: "it does not exist"}})
	if err := p.Flush(); err != nil || !strings.Contains(out.String(), "The mesh directory cannot be read") || strings.Contains(out.String(), "Rename") {
		t.Errorf("%v %s", err, out.String())
	}
}

// ofMode is the status of a process in a mode that writes.
func ofMode(m config.Mode, leads bool, clusters ...api.Cluster) *api.Status {
	st := samples.StatusOf(clusters)
	st.Agent.Mode, st.Agent.Leads = string(m), &leads
	st.Summary = api.Summary{Clusters: len(clusters), ClustersReady: st.Summary.ClustersReady}
	st.KVStore = &api.KVStore{
		State: "ready", Ready: true, Connected: true, WriteOnly: true, Endpoints: []string{"https://home.mesh:2379"}, Lease: "1 of keys, 1 of locks",
	}
	return st
}

func written(prefix string, entries int, change func(*api.Written)) api.Written {
	w := api.Written{Prefix: prefix, Cluster: "home", Entries: entries}
	if change != nil {
		change(&w)
	}
	return w
}

// TestStatusTextOfTheModes: an operator, a mirror, a standby, and errors in the description.
func TestStatusTextOfTheModes(t *testing.T) {
	t.Parallel()
	described := &api.Description{Source: "/etc/mesh/manifests", Listed: true, AsOf: samples.Before(0), Objects: map[string]int{"services": 3, "nodes": 2}}
	operates := ofMode(config.ModeOperate, true)
	operates.Description = described
	operates.KVStore.Written = []api.Written{
		written("cilium/cluster-config/", 1, nil), written("cilium/state/services/v1/home/", 40, nil),
	}
	refused := ofMode(config.ModeOperate, true)
	refused.State = "degraded"
	refused.Description = &api.Description{Source: "/etc/mesh/manifests"}
	refused.KVStore.Written = []api.Written{
		written("cilium/state/services/v1/home/", 40, func(w *api.Written) {
			w.Pending, w.Refused, w.LastError = 3, 2, `kvstore update "cilium/state/services/v1/home/shop/web": permission denied`
		}),
	}
	behind := samples.GoodCluster("cairo", 3)
	behind.State, behind.Message = "degraded", "the copy of its ips is behind since 2026-11-21T01:00:00Z: 812 are still to be written to our own kvstore"
	mirrors := ofMode(config.ModeMirror, true, samples.GoodCluster("accra", 2), behind)
	mirrors.KVStore.Written = []api.Written{
		written("cilium/cache/ip/v1/cairo/", 1200, func(w *api.Written) { w.Pending = 812 }), written("cilium/cache/ip/v1/accra/", 1200, nil),
	}
	lost := ofMode(config.ModeMirror, false)
	lost.KVStore = &api.KVStore{State: "connecting", WriteOnly: true, Message: "what is to be written waits: connection refused"}
	cutOff := ofMode(config.ModeMirror, true, behind)
	cutOff.State, cutOff.KVStore = "degraded", &api.KVStore{
		State: "connecting", WriteOnly: true, Message: "what is to be written waits: connection refused",
		Written: []api.Written{written("cilium/cache/ip/v1/cairo/", 1200, func(w *api.Written) { w.Pending, w.LastError = 812, "connection refused" })},
	}
	full := ofMode(config.ModeMirror, true, behind)
	full.State, full.KVStore.State, full.KVStore.Code = "degraded", "degraded", "MESH-7020"
	full.KVStore.Message = "only deletions are copied into our own etcd, which is nearly full: 1640 MiB of 2048 MiB are in use; other writes continue below 75% of its quota (--own-kvstore-stop-at)"
	doubts := samples.StatusOf([]api.Cluster{samples.GoodCluster("accra", 2)})
	doubts.Description = &api.Description{
		Source: "/etc/mesh/manifests", Listed: true, AsOf: samples.Before(time.Minute), Error: "the directory of manifests does not exist: /etc/mesh/manifests",
		Refused: []string{"/etc/mesh/manifests/a.yaml, document 2: it is not valid YAML", "/etc/mesh/manifests/b.yaml: permission denied", "c", "d"},
	}
	serves := samples.StatusOf([]api.Cluster{samples.GoodCluster("accra", 2)})
	serves.Serving = []api.Serving{{Protocol: "DNS", Address: "127.0.0.1:5353", Requests: 12345, Refused: 2}}
	serves.TLS = &api.ListenerCertificates{
		Server: samples.Before(-3 * 24 * time.Hour), Authority: samples.Before(-20 * 24 * time.Hour), ClientAuthority: samples.Before(time.Hour), Notices: []api.Notice{
			codes.ListenerFilesUnusable.Notice("since 2026-11-21T00:52:03Z, the files on disk cannot be used, and those of before stay in use: the certificate /tls/tls.crt with the key /tls/tls.key: tls: private key does not match public key"),
			codes.ListenerCertificateEndsSoon.Notice("the certificate /tls/tls.crt expires at 2026-11-24T01:02:03Z"),
			codes.ListenerCertificateEndsSoon.Notice("the last authority of clients in /tls/ca.crt expired at 2026-11-21T00:02:03Z: a new connection fails"),
			codes.ListenerCertificateEnds.Notice("a certificate above the first one in /tls/tls.crt expires at 2026-12-11T01:02:03Z"),
		},
	}
	var wide strings.Builder // the table has the current times
	if err := Write(&wide, printer.Style{Wide: true}, Page{Status: serves, Now: samples.Now}); err != nil {
		t.Fatal(err)
	}
	const ends = "certificates of the listeners: server valid until 2026-11-24T01:02:03Z (3d from now); above it valid until 2026-12-11T01:02:03Z (20d from now); last authority of clients expired 2026-11-21T00:02:03Z (1h ago) "
	if !strings.Contains(strings.Join(strings.Fields(wide.String()), " "), ends) {
		t.Errorf("without %s: %s", ends, wide.String())
	}
	for name, test := range map[string]struct {
		status *api.Status
		style  printer.Style
	}{
		"status-serves":          {status: serves, style: printer.Style{Width: 80}},
		"status-operates":        {status: operates},
		"status-operates-badly":  {status: refused},
		"status-mirrors":         {status: mirrors},
		"status-mirrors-nowhere": {status: cutOff},
		"status-mirrors-full":    {status: full},
		"status-stands-by":       {status: ofMode(config.ModeMirror, false)},
		"status-stands-by-badly": {status: lost},
		"status-doubts":          {status: doubts, style: printer.Style{Width: 80}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := Write(&out, test.style, Page{Status: test.status, Now: samples.Now}); err != nil {
				t.Fatal(err)
			}
			samples.Golden(t, name, out.String())
		})
	}
}
