package publish

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/recorded"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var must = waittest.Must

// object reads an object from YAML.
func object[T any](t *testing.T, text string) *T {
	t.Helper()
	return recorded.Object[T](t, text)
}

// published is a value to write.
type published interface {
	Key() string
	Encode() []byte
}

func compare(t *testing.T, got published, v recorded.Vector) {
	t.Helper()
	if got.Key() != v.Key {
		t.Errorf("the key is %s, want %s", got.Key(), v.Key)
	}
	if d := cmp.Diff(string(v.Value), string(got.Encode())); d != "" {
		t.Errorf("the value (-want +got):\n%s", d)
	}
}

func cluster2() wire.ClusterInfo { return recorded.Cluster2() }

func TestGoldenEndpointSlicesArePublishedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, v := range recorded.Entries(t, recorded.EndpointSlices) {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			s := EndpointSlice(v.Cluster, v.Slice)
			if s.Key() != v.Key {
				t.Errorf("the key is %s, want %s", s.Key(), v.Key)
			}
			r, err := zstd.NewReader(nil)
			must(t, err)
			defer r.Close()
			message, err := r.DecodeAll(s.Encode(), nil)
			must(t, err)
			if d := cmp.Diff(v.Message, message); d != "" {
				t.Errorf("the message (-want +got):\n%s", d)
			}
		})
	}
}

func TestGoldenValuesArePublishedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, s := range recorded.Entries(t, recorded.Services) {
		t.Run("service: "+s.Note, func(t *testing.T) { compare(t, Service(s.Cluster, s.Service, s.Slices), s.Vector) })
	}
	for _, e := range recorded.Entries(t, recorded.ServiceExports) {
		t.Run("export: "+e.Note, func(t *testing.T) { compare(t, ServiceExport(e.Cluster, e.Export, e.Service), e.Vector) })
	}
	for _, n := range recorded.Entries(t, recorded.Nodes) {
		t.Run("node: "+n.Note, func(t *testing.T) {
			node, err := CiliumNode(n.Cluster, n.Node)
			must(t, err)
			// A vector has the encoder's form of addresses that are names. Readers of a CiliumNode leave them out.
			n.Value = []byte(strings.ReplaceAll(string(n.Value), `[{"Type":"Hostname","IP":""},{"Type":"ExternalDNS","IP":""}]`, "null"))
			compare(t, node, n.Vector)
		})
	}
}
