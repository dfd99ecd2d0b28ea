package wire

import (
	"encoding/json"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// entry is what all resources can do.
type entry interface {
	Key() string
	Encode() []byte
}

// checkEntry compares an entry's key, cache key and value with a vector.
func checkEntry(t *testing.T, v vector, r Resource, cluster string, e entry) {
	t.Helper()
	same(t, "key", e.Key(), v.Key)
	if _, compressed := e.(*EndpointSlice); compressed {
		samePromised(t, "value", e.Encode(), v.Base64)
	} else {
		same(t, "value", string(e.Encode()), string(v.Base64))
	}
	name := strings.TrimPrefix(v.Key, r.Prefix(cluster, false))
	same(t, "cache key", r.Key(cluster, true, name), v.CacheKey)
}

func TestGoldenNodesAreWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, v := range golden[[]vector](t, "nodes.json") {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			var n Node
			if err := json.Unmarshal(v.Base64, &n); err != nil {
				t.Fatal(err)
			}
			checkEntry(t, v, Nodes, n.Cluster, &n)

			layout, _ := NewLayout(511)
			got, err := DecodeNode(n.Name, v.Base64, Expect{Cluster: n.Cluster, ClusterID: n.ClusterID, Layout: layout})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&n, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGoldenANodeBuiltByHandIsWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	want := golden[[]vector](t, "nodes.json")[2]
	v4 := NewCIDR(netip.MustParsePrefix("10.2.2.0/24"))
	v6 := NewCIDR(netip.MustParsePrefix("fd02:0:0:2::/64"))
	n := &Node{
		Name:    "node3.example.com",
		Cluster: "cluster2",
		IPAddresses: []NodeAddress{
			{Type: AddressInternalIP, IP: net.ParseIP("192.168.2.12")},
			{Type: AddressInternalIP, IP: net.ParseIP("fd00:2::12")},
			{Type: AddressExternalIP, IP: net.ParseIP("203.0.113.12")},
			{Type: AddressCiliumInternalIP, IP: net.ParseIP("10.2.2.5")},
			{Type: AddressCiliumInternalIP, IP: net.ParseIP("fd02:0:0:2::5")},
		},
		IPv4AllocCIDR: &v4,
		IPv4SecondaryAllocCIDRs: []CIDR{
			NewCIDR(netip.MustParsePrefix("10.2.3.99/24")), NewCIDR(netip.MustParsePrefix("10.2.4.0/23")),
		},
		IPv6AllocCIDR:           &v6,
		IPv6SecondaryAllocCIDRs: []CIDR{NewCIDR(netip.MustParsePrefix("fd02:0:0:3::/64"))},
		IPv4HealthIP:            net.ParseIP("10.2.2.9"),
		IPv6HealthIP:            net.ParseIP("fd02:0:0:2::9"),
		IPv4IngressIP:           net.ParseIP("10.2.2.10"),
		IPv6IngressIP:           net.ParseIP("fd02:0:0:2::a"),
		ClusterID:               2,
		Source:                  "custom-resource",
		EncryptionKey:           3,
		BootID:                  "3b9a2a1a-6c58-4d47-9a3b-0f3c2a1d5e77",
	}
	checkEntry(t, want, Nodes, "cluster2", n)
}

func TestGoldenServicesAreWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, v := range golden[[]vector](t, "services.json") {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			var s Service
			if err := json.Unmarshal(v.Base64, &s); err != nil {
				t.Fatal(err)
			}
			checkEntry(t, v, Services, s.Cluster, &s)

			e := Expect{Cluster: s.Cluster, ClusterID: s.ClusterID}
			got, err := DecodeService(s.Namespace+"/"+s.Name, v.Base64, e)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&s, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGoldenServiceExportsAreWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, v := range golden[[]vector](t, "serviceexports.json") {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			parts := strings.Split(v.Key, "/")
			cluster, name := parts[4], parts[5]+"/"+parts[6]
			s, err := DecodeServiceExport(name, v.Base64, Expect{Cluster: cluster})
			if err != nil {
				t.Fatal(err)
			}
			checkEntry(t, v, ServiceExports, cluster, s)
		})
	}
}

func TestTheTimeOfAServiceExportIsWrittenInSecondsOfUTC(t *testing.T) {
	t.Parallel()
	s := &ServiceExport{ExportCreationTimestamp: time.Date(2026, 3, 4, 5, 6, 7, 9e8, time.FixedZone("", 7200))}
	if got := string(s.Encode()); !strings.Contains(got, `"exportCreationTimestamp":"2026-03-04T03:06:07Z"`) {
		t.Error(got)
	}
	if got := string((&ServiceExport{}).Encode()); !strings.Contains(got, `"exportCreationTimestamp":null`) {
		t.Error(got)
	}
}

func TestGoldenEndpointSlicesAreWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	type sliceVector struct {
		vector
		Uncompressed []byte          `json:"uncompressed_base64"`
		Decoded      json.RawMessage `json:"decoded_json"`
	}
	for _, v := range golden[[]sliceVector](t, "endpointslices.json") {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			var s EndpointSlice
			if err := json.Unmarshal(v.Decoded, &s); err != nil {
				t.Fatal(err)
			}
			same(t, "message", string(s.appendProto(nil)), string(v.Uncompressed))
			checkEntry(t, v.vector, EndpointSlices, s.Cluster, &s)

			e := Expect{Cluster: s.Cluster, ClusterID: s.ClusterID}
			got, err := DecodeEndpointSlice(s.Namespace+"/"+s.Name, v.Base64, e)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&s, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGoldenIdentitiesAreWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	type identityVector struct {
		vector
		ReferenceKey   string            `json:"value_key"`
		ReferenceValue string            `json:"value_key_value"`
		LockPath       string            `json:"lock_path_allocate"`
		GCLockPath     string            `json:"lock_path_gc"`
		RoundTrip      string            `json:"round_trip"`
		Parsed         []string          `json:"parsed_labels"`
		AsMap          map[string]string `json:"parsed_as_map"`
	}
	for _, v := range golden[[]identityVector](t, "identities.json") {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			id, err := strconv.ParseUint(v.ReferenceValue, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			i := Identity{ID: uint32(id), Labels: ParseLabels(v.Value)}
			same(t, "key", i.Key(), v.Key)
			same(t, "cache key", Identities.Key("cluster2", true, v.ReferenceValue), v.CacheKey)
			same(t, "round trip", i.Labels.String(), v.RoundTrip)
			if v.RoundTrip == v.Value {
				same(t, "encoded", string(i.Encode()), v.Value)
			}
			same(t, "reference", IdentityAllocation.Reference(v.Value, "192.168.2.10"), v.ReferenceKey)
			same(t, "reference's value", string(EncodeAllocatedID(uint64(i.ID))), v.ReferenceValue)
			same(t, "lock", IdentityAllocation.Lock(v.Value), v.LockPath)
			same(t, "lock for deletion", IdentityAllocation.CollectionLock(uint64(i.ID)), v.GCLockPath)
			if d := cmp.Diff(v.Parsed, bars(i.Labels)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(v.AsMap, i.Labels.Map()); d != "" {
				t.Error(d)
			}
			if got, err := DecodeAllocatedID(v.ReferenceValue); err != nil || got != uint64(i.ID) {
				t.Errorf("reference reads as %d, %v", got, err)
			}
		})
	}
}

// bars prints labels as the vectors do.
func bars(labels Labels) []string {
	text := []string{}
	for _, l := range labels {
		text = append(text, l.Source+"|"+l.Key+"|"+l.Value)
	}
	return text
}

func TestGoldenIPsAreWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, v := range golden[[]vector](t, "ips.json") {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			var p IPIdentityPair
			if err := json.Unmarshal(v.Base64, &p); err != nil {
				t.Fatal(err)
			}
			checkEntry(t, v, IPs, "cluster2", &p)

			ip, ok := decodeFast(p.Name(), v.Base64)
			made := NewPrefixPair(ip.Prefix)
			if ip.Host {
				made = NewHostPair(ip.Prefix.Addr())
			}
			if same(t, "name", made.Name(), p.Name()); !ok {
				t.Error("the fast path does not take it")
			}
		})
	}
}

func TestGoldenClusterConfigsAreWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, v := range golden[[]vector](t, "clusterconfigs.json") {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			c, err := DecodeClusterConfig(v.Base64)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "value", string(c.Encode()), v.Value)
			cluster := strings.TrimPrefix(v.Key, ClusterConfigPrefix+"/")
			same(t, "key", ClusterConfigKey(cluster), v.Key)
		})
	}
}
