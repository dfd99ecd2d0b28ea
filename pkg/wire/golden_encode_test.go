package wire

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// entry has the methods of all resources.
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

// checkWritten compares entries built from the recorded values with the vectors, both encoded and decoded.
func checkWritten[T any, E interface {
	*T
	entry
}](t *testing.T, file string, r Resource, of func(E) (name string, e Expect), decode func(string, []byte, Expect) (E, error)) {
	t.Parallel()
	for _, v := range golden[[]vector](t, file) {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			want := E(new(T))
			must(t, json.Unmarshal(v.Base64, want))
			name, e := of(want)
			checkEntry(t, v, r, e.Cluster, want)
			got, err := decode(name, v.Base64, e)
			if checkStricter(t, v.Note, err) {
				return
			}
			must(t, err)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGoldenNodesAreWrittenAsCiliumDoes(t *testing.T) {
	layout, _ := NewLayout(511)
	checkWritten(t, "nodes.json", Nodes, func(n *Node) (string, Expect) {
		return n.Name, Expect{Cluster: n.Cluster, ClusterID: n.ClusterID, Layout: layout}
	}, DecodeNode)
}

func TestGoldenServicesAreWrittenAsCiliumDoes(t *testing.T) {
	checkWritten(t, "services.json", Services, func(s *Service) (string, Expect) {
		return s.Namespace + "/" + s.Name, Expect{Cluster: s.Cluster, ClusterID: s.ClusterID}
	}, DecodeService)
}

func TestGoldenServiceExportsAreWrittenAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, v := range golden[[]vector](t, "serviceexports.json") {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			parts := strings.Split(v.Key, "/")
			cluster, name := parts[4], parts[5]+"/"+parts[6]
			s, err := DecodeServiceExport(name, v.Base64, Expect{Cluster: cluster})
			must(t, err)
			checkEntry(t, v, ServiceExports, cluster, s)
		})
	}
}

func TestTheTimeOfAServiceExportIsWrittenInSecondsOfUTC(t *testing.T) {
	t.Parallel()
	s := &ServiceExport{ExportCreationTimestamp: ExportTime{time.Date(2026, 3, 4, 5, 6, 7, 9e8, time.FixedZone("", 7200))}}
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
			must(t, json.Unmarshal(v.Decoded, &s))
			same(t, "message", string(s.appendProto(nil)), string(v.Uncompressed))
			checkEntry(t, v.vector, EndpointSlices, s.Cluster, &s)

			e := Expect{Cluster: s.Cluster, ClusterID: s.ClusterID}
			got, err := DecodeEndpointSlice(s.Namespace+"/"+s.Name, v.Base64, e)
			if checkStricter(t, v.Note, err) {
				return
			}
			must(t, err)
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
			must(t, err)
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

// bars formats labels as the vectors do.
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
			must(t, json.Unmarshal(v.Base64, &p))
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
			must(t, err)
			same(t, "value", string(c.Encode()), v.Value)
			cluster := strings.TrimPrefix(v.Key, ClusterConfigPrefix+"/")
			same(t, "key", ClusterConfigKey(cluster), v.Key)
		})
	}
}
