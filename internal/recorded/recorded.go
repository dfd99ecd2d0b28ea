// Package recorded has keys and values that Cilium's own types gave, and the
// objects of Kubernetes that stand behind them. Only tests use it: whatever is
// made of the objects must be what was recorded.
package recorded

import (
	"embed"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

//go:embed golden
var files embed.FS

// Vector is a recorded key with its value.
type Vector struct {
	Key string `json:"key"`
	// CacheKey is where a mirror has it.
	CacheKey string `json:"cache_key"`
	Note     string `json:"note"`
	Value    []byte `json:"value_base64"`
	// Message is the value before it was compressed, of endpoint slices alone.
	Message []byte `json:"uncompressed_base64"`
}

// The files of vectors.
const (
	ClusterConfigs = "clusterconfigs"
	EndpointSlices = "endpointslices"
	Identities     = "identities"
	IPs            = "ips"
	Nodes          = "nodes"
	ServiceExports = "serviceexports"
	Services       = "services"
)

// Vectors are those of a file.
func Vectors(t testing.TB, file string) []Vector {
	t.Helper()
	data, err := files.ReadFile("golden/" + file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var all []Vector
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return all
}

// Cluster2 is the cluster of most vectors.
func Cluster2() wire.ClusterInfo {
	return wire.ClusterInfo{Name: "cluster2", ID: 2, MaxConnectedClusters: 255}
}

// Widest is the cluster of the vectors with maximum lengths.
func Widest() wire.ClusterInfo {
	return wire.ClusterInfo{Name: strings.Repeat("c", 32), ID: 255, MaxConnectedClusters: 255}
}

// Object reads an object from YAML.
func Object[T any](t testing.TB, text string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// replaced is the vector with what its objects cannot say as it was recorded: in
// the value the first text of each pair is replaced by the second.
func (v Vector) replaced(t testing.TB, pairs []string) Vector {
	t.Helper()
	value := strings.NewReplacer(pairs...).Replace(string(v.Value))
	if len(pairs) > 0 && value == string(v.Value) {
		t.Errorf("%q is not in the vector %s", pairs[0], v.Key)
	}
	v.Value = []byte(value)
	return v
}
