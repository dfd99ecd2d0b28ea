package status

import (
	"bytes"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/cli/samples"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

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

// TestStatusTextOfTheModes: who operates, who mirrors, who stands by, and what is
// wrong with the description.
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
	full.KVStore.Message = "only deletions are copied into our own etcd, which is nearly full: 1640 MiB of 2048 MiB are in use; the rest goes on below 75% of its quota (--own-kvstore-stop-at)"
	doubts := samples.StatusOf([]api.Cluster{samples.GoodCluster("accra", 2)})
	doubts.Description = &api.Description{
		Source: "/etc/mesh/manifests", Listed: true, AsOf: samples.Before(time.Minute), Error: "the directory of manifests does not exist: /etc/mesh/manifests",
		Refused: []string{"/etc/mesh/manifests/a.yaml, document 2: it is not valid YAML", "/etc/mesh/manifests/b.yaml: permission denied", "c", "d"},
	}
	for name, test := range map[string]struct {
		status *api.Status
		style  printer.Style
	}{
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
			if err := Write(&out, test.style, View{Status: test.status, Now: samples.Now}); err != nil {
				t.Fatal(err)
			}
			samples.Golden(t, name, out.String())
		})
	}
}
