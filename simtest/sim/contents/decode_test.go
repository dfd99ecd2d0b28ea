package contents

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// decoders are those of a reader in another cluster, by resource.
func decoders(t *testing.T, c Cluster) map[wire.Resource]func(string, []byte) error {
	t.Helper()
	layout, err := wire.NewLayout(c.MaxConnectedClusters)
	must(t, err)
	e := wire.Expect{Cluster: c.Name, ClusterID: c.ID, LocalID: c.ID%c.MaxConnectedClusters + 1, Layout: layout}
	reader := wire.ClusterInfo{Name: "reader", ID: e.LocalID, MaxConnectedClusters: c.MaxConnectedClusters}
	return map[wire.Resource]func(string, []byte) error{
		wire.Nodes:          func(n string, v []byte) error { _, err := wire.DecodeNode(n, v, e); return err },
		wire.Services:       func(n string, v []byte) error { _, err := wire.DecodeService(n, v, e); return err },
		wire.EndpointSlices: func(n string, v []byte) error { _, err := wire.DecodeEndpointSlice(n, v, e); return err },
		wire.ServiceExports: func(n string, v []byte) error { _, err := wire.DecodeServiceExport(n, v, e); return err },
		wire.Identities:     func(n string, v []byte) error { _, err := wire.DecodeIdentity(n, v, e); return err },
		wire.IPs:            func(n string, v []byte) error { _, err := wire.DecodeIP(n, v, e); return err },
		"config": func(_ string, v []byte) error {
			cfg, err := wire.DecodeClusterConfig(v)
			if err == nil {
				err = cfg.Validate(reader)
			}
			return err
		},
	}
}

// decodeAll reads every key as a reader of another cluster would, and counts them.
func decodeAll(t *testing.T, c Cluster, contents map[string]string) map[wire.Resource]int {
	t.Helper()
	counts, all := map[wire.Resource]int{}, decoders(t, c)
	if err := all["config"]("", c.Config().Value); err != nil {
		t.Error(err)
	}
	for key, value := range contents {
		found := false
		for _, resource := range wire.Resources() {
			name, ok := strings.CutPrefix(key, resource.Prefix(c.Name, false))
			if !ok {
				continue
			}
			found = true
			counts[resource]++
			if err := all[resource](name, []byte(value)); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		if !found {
			t.Errorf("%s belongs to no resource", key)
		}
	}
	return counts
}

// TestReadersAcceptTheContents: also after changes, and of a cluster with another ID.
func TestReadersAcceptTheContents(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Cluster){
		"default":             func(*Cluster) {},
		"service exports":     func(c *Cluster) { c.ServiceExports = true },
		"like 1.19":           func(c *Cluster) { c.EndpointSlices = false },
		"slices only":         func(c *Cluster) { c.SlicesOnly = true },
		"IPv6":                func(c *Cluster) { c.PodRange = netip.MustParsePrefix("fd00:1234::/48") },
		"511 clusters":        func(c *Cluster) { c.MaxConnectedClusters, c.ID = 511, 300 },
		"more than one slice": func(c *Cluster) { c.Addresses, c.Backends, c.Services = 400, 120, 2 },
		"services share pods": func(c *Cluster) { c.Identities = 3 },
		"fewer pods":          func(c *Cluster) { c.Addresses = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Default("cluster7", 7)
			change(&c)
			m, err := New(c)
			must(t, err)
			defer m.Close()
			counts := decodeAll(t, c, encodeModel(m))
			if c.SlicesOnly && (counts[wire.Services] != 0 || counts[wire.EndpointSlices] != c.Services) {
				t.Errorf("%d services and %d slices", counts[wire.Services], counts[wire.EndpointSlices])
			}
			for range 500 {
				m.Step()
			}
			decodeAll(t, c, encodeModel(m))
			c.ID = 9
			m.Renumber(c.ID)
			decodeAll(t, c, encodeModel(m))
			claim, possible := m.Claim(netip.MustParseAddr("192.0.2.1"))
			if !possible {
				t.Fatal("no claim")
			}
			decodeAll(t, c, map[string]string{claim.Key: string(claim.Value)})
		})
	}
}

func TestReadersRefuseWhatIsMalformed(t *testing.T) {
	t.Parallel()
	c := Default("cluster2", 2)
	c.ServiceExports = true
	for key := range contentsOf(t, c) {
		for resource, decode := range decoders(t, c) {
			if name, ok := strings.CutPrefix(key, resource.Prefix(c.Name, false)); resource == "config" || ok {
				if err := decode(name, []byte(Malformed)); err == nil {
					t.Errorf("%s: accepted", key)
				}
			}
		}
	}
}
