// Package recorded has keys and values that Cilium's own types produced, and the Kubernetes objects from which they
// were made. Only tests use it: our keys and values for the objects must equal the recorded ones.
package recorded

import (
	"embed"
	"encoding/json"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

//go:embed golden
var files embed.FS

// Vector is a recorded key with its value.
type Vector struct {
	Key string `json:"key"`
	// CacheKey is the key of a mirror's copy.
	CacheKey string `json:"cache_key"`
	Note     string `json:"note"`
	Value    []byte `json:"value_base64"`
	// Message is the value before compression, only for endpoint slices.
	Message []byte `json:"uncompressed_base64"`
}

// The names of the files with vectors, and of those with objects.
const (
	ClusterConfigs = "clusterconfigs"
	EndpointSlices = "endpointslices"
	Identities     = "identities"
	IPs            = "ips"
	Nodes          = "nodes"
	ServiceExports = "serviceexports"
	Services       = "services"
)

// Vectors returns the vectors of a file.
func Vectors(t testing.TB, file string) []Vector {
	t.Helper()
	var all []Vector
	read(t, file+".json", func(data []byte) error { return json.Unmarshal(data, &all) })
	return all
}

func read(t testing.TB, file string, parse func([]byte) error) {
	t.Helper()
	data, err := files.ReadFile("golden/" + file)
	if err == nil {
		err = parse(data)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
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

// Entry is a recorded vector with the objects for it: those of its kind.
type Entry struct {
	Vector  `json:"-"`
	Cluster wire.ClusterInfo `json:"cluster"` // [Cluster2] unless the file has another one
	// Skip is the number of vectors before this one that have no objects. Replace is for parts of the recorded value
	// that the objects cannot express: in the value the first text of each pair is replaced by the second.
	Skip    int      `json:"skip"`
	Replace []string `json:"replace"`

	Node     *local.CiliumNode            `json:"node"`
	Service  *corev1.Service              `json:"service"`
	Slices   []*discoveryv1.EndpointSlice `json:"slices"` // of a service
	Slice    *discoveryv1.EndpointSlice   `json:"slice"`
	Export   *local.ServiceExport         `json:"export"`
	Identity *local.CiliumIdentity        `json:"identity"`
}

// Entries returns the vectors of a file that have objects.
func Entries(t testing.TB, file string) (all []Entry) {
	t.Helper()
	read(t, file+".yaml", func(data []byte) error { return yaml.UnmarshalStrict(data, &all) })
	vectors := Vectors(t, file)
	for i := range all {
		e := &all[i]
		e.Vector, vectors = vectors[e.Skip], vectors[e.Skip+1:]
		if e.Cluster.ID == 0 {
			e.Cluster = Cluster2()
		}
		value := strings.NewReplacer(e.Replace...).Replace(string(e.Value))
		if len(e.Replace) > 0 && value == string(e.Value) {
			t.Errorf("%q is not in the vector %s", e.Replace[0], e.Key)
		}
		e.Value = []byte(value)
		if e.Identity != nil {
			e.Identity.Name = path.Base(e.Key)
		}
	}
	if len(vectors) > 0 && file != Services { // the last vector of Services has none
		t.Errorf("%d vectors have no objects", len(vectors))
	}
	return all
}
