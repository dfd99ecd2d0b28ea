package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// ResultsEnv names the folder that results are kept in; without it they are not.
const ResultsEnv = "INTEROP_RESULTS"

// Direction is the writing side and the reading side.
type Direction string

// The directions.
const (
	TheyWrite Direction = "Cilium → mesh-agent"
	WeWrite   Direction = "mesh-agent → Cilium"
)

// Path is the way of the objects from the writer to the reader.
type Path string

// The paths.
const (
	Values   Path = "values"      // encoded here, decoded there, without an etcd
	Direct   Path = "direct"      // through the writer's etcd
	ByCilium Path = "KVStoreMesh" // copied by Cilium's mirror
	ByUs     Path = "our mirror"  // copied by `mesh-agent mirror`
)

// Result is one cell of the matrix, or part of one: cells add up.
type Result struct {
	Release   string
	Kind      model.Kind
	Direction Direction
	Path      Path
	Objects   int    // that were compared
	Different int    // of these: not as written, missing, or not to be there
	Rejected  int    // by the reader
	Seed      uint64 // of the random objects; 0 is none
}

// Trial is a result that is no cell of the matrix: something that both sides did
// together, with its counts.
type Trial struct {
	Name    string // in words, such as "Four allocators of each side on one etcd"
	Release string
	Figures []Figure
}

// Figure is something that was counted or measured.
type Figure struct{ Name, Value string }

// Keep adds a result of the test to the results of the run.
func Keep(t testing.TB, r Result) { t.Helper(); keep(t, "results", r) }

// KeepTrial adds a trial to the results of the run. A test that fails keeps none.
func KeepTrial(t testing.TB, trial Trial) { t.Helper(); keep(t, "trials", trial) }

func keep(t testing.TB, what string, v any) {
	t.Helper()
	dir := os.Getenv(ResultsEnv)
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "_")+"."+what),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	Must(t, err)
	Must(t, json.NewEncoder(f).Encode(v))
	Must(t, f.Close())
}
