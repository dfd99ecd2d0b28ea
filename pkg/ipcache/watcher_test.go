package ipcache

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// watcher turns recorded events of a cluster's addresses into changes.
type watcher struct {
	cache  *Cache
	expect wire.Expect
	held   map[string]*Entry
}

func (w *watcher) event(prefix, line string) error {
	what, rest, _ := strings.Cut(line, " ")
	key, value, _ := strings.Cut(rest, " ")
	name := strings.TrimPrefix(key, prefix)
	switch what {
	case "listDone":
	case "delete":
		w.cache.Apply([]Op{{Old: w.held[name]}})
		delete(w.held, name)
	default:
		ip, err := wire.DecodeIP(name, []byte(value), w.expect)
		if err != nil {
			return err
		}
		kind := KindCIDR
		if ip.Host {
			kind = KindHost
		}
		e := NewEntry(Spec{
			Prefix: ip.Prefix, Cluster: &Cluster{w.expect.Cluster, w.expect.ClusterID}, Kind: kind,
			Source: wire.SourceClusterMesh, Identity: ip.Identity, EncryptionKey: ip.EncryptionKey,
			HostIP: ip.HostIP, Namespace: ip.Namespace, Name: ip.Pod, Ports: ip.Ports,
		})
		w.cache.Apply([]Op{{Old: w.held[name], New: e}})
		w.held[name] = e
	}
	return nil
}

// call shows an entry as the recording shows a call.
func call(e *Entry) string {
	ip, host := e.Prefix().String(), "<nil>"
	if e.Kind() == KindHost {
		ip = e.Prefix().Addr().String()
	}
	if e.HostIP().IsValid() {
		host = e.HostIP().String()
	}
	pod := "k8s=none"
	if e.Pod() != "" {
		var ports []string
		for _, p := range e.Ports() {
			ports = append(ports, fmt.Sprintf("%s=%d/%d", p.Name, p.Port, map[string]int{"TCP": 6, "UDP": 17}[p.Protocol]))
		}
		pod = fmt.Sprintf("ns=%s pod=%s ports=%v", e.Namespace(), e.Pod(), ports)
	}
	return fmt.Sprintf("upsert ip=%s host=%s key=%d id=%d source=%s %s", ip, host, e.EncryptionKey(), e.Identity(), e.Source(), pod)
}

// TestGoldenWatcher replays what Cilium's watcher of addresses was given, and
// expects after the list what it made visible: reserved identities and 0 pass,
// those out of range do not, the host becomes a remote node. In the end the two
// addresses that were deleted are gone, of which one was never there.
func TestGoldenWatcher(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden/watch_traces.json")
	if err != nil {
		t.Fatal(err)
	}
	var traces []struct {
		Name   string
		Phases []struct {
			Prefix string   `json:"watched_prefix"`
			Events []string `json:"events_in"`
			Calls  []string `json:"observer_calls"`
		}
	}
	if err := json.Unmarshal(data, &traces); err != nil {
		t.Fatal(err)
	}
	layout, err := wire.NewLayout(255)
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, tr := range traces {
		// Cluster-annotated addresses never occur on the wire (wire.md §4.2).
		if !strings.HasPrefix(tr.Name, "ip watcher") || strings.Contains(tr.Name, "cluster-annotated") {
			continue
		}
		played++
		w := &watcher{New(), wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1, Layout: layout}, map[string]*Entry{}}
		phase := tr.Phases[0]
		rejected := 0
		for _, line := range phase.Events {
			if w.event(phase.Prefix, line) != nil {
				rejected++
			}
			if !strings.HasPrefix(line, "listDone") {
				continue
			}
			var want, got []string
			for _, c := range phase.Calls {
				if strings.HasPrefix(c, "upsert ") {
					want = append(want, c)
				}
			}
			for e := range w.cache.fresh().From(netip.Prefix{}) {
				got = append(got, call(e))
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tr.Name, diff)
			}
		}
		if rejected != 6 || w.cache.Len() != 6 || w.cache.LookupWinner(netip.MustParseAddr("10.2.0.11")) != nil {
			t.Errorf("%s: %d rejected, %d left; want 6 and 6, and not 10.2.0.11", tr.Name, rejected, w.cache.Len())
		}
	}
	if played != 2 {
		t.Errorf("%d traces played, want 2", played)
	}
}
