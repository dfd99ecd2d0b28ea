package wire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestMain checks for leaked goroutines: the zstd library can start some, which a decoder that is not closed would
// leave running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden reads a file of vectors. They were made with the types of Cilium v1.20.2.
func golden[T any](t testing.TB, file string) T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden", file))
	must(t, err)
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

var must = waittest.Must

// vector is one key, and the value that Cilium writes to it.
type vector struct {
	Key      string `json:"key"`
	CacheKey string `json:"cache_key"`
	Value    string `json:"value"`
	Base64   []byte `json:"value_base64"`
	Note     string `json:"note"`
}

// decodeVector is one value that Cilium was given to read.
type decodeVector struct {
	Name         string  `json:"key_after_prefix"`
	Value        string  `json:"value"`
	Base64       string  `json:"value_base64"`
	Cluster      string  `json:"expect_cluster"`
	ClusterID    uint32  `json:"expect_cluster_id"`
	Accepted     bool    `json:"accepted"`
	Error        string  `json:"error"`
	ReMarshalled *string `json:"re_marshalled"`
	Note         string  `json:"note"`
	Decoded      bool    `json:"decoded"`
}

func (v decodeVector) bytes(t testing.TB) []byte {
	t.Helper()
	if v.Base64 == "" {
		return []byte(v.Value)
	}
	b, err := base64.StdEncoding.DecodeString(v.Base64)
	must(t, err)
	return b
}

// expect returns what the reader of all vectors expects: local1 with ID 1, 255 clusters.
func (v decodeVector) expect() Expect {
	return Expect{Cluster: v.Cluster, ClusterID: v.ClusterID, LocalID: 1}
}

// cluster2 expects entries of the remote cluster of the vectors.
var cluster2 = Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1}

// stricter reports whether Cilium reads a vector and we do not, by its note: it has names that no Kubernetes object can
// have (names.go), so no cluster publishes it.
func stricter(note string) bool {
	switch note {
	case "slash in name: name equals key remainder, accepted",
		"labels/annotations with characters JSON must escape (Go escapes < > & as \\u003c etc.); addresses with nil IP encode as empty string",
		"maximum lengths, port 65535", "map entries are emitted sorted by key":
		return true
	}
	return false
}

// checkStricter returns whether we are stricter about a vector. If so, the error must be a refusal of a name.
func checkStricter(t *testing.T, note string, err error) bool {
	t.Helper()
	if !stricter(note) {
		return false
	}
	if r := checkRejected(t, err); r.Reason != ReasonName {
		t.Errorf("%s: %v", note, err)
	}
	return true
}

// checkVerdict compares the result of a decoder with that of Cilium.
func checkVerdict(t *testing.T, v decodeVector, err error) {
	t.Helper()
	if checkStricter(t, v.Note, err) {
		return
	}
	if v.Accepted || v.Decoded {
		if err != nil {
			t.Fatalf("rejected: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("accepted, but Cilium says: %s", v.Error)
	}
	checkRejected(t, err)
	checkErrorText(t, err, v.Error)
}

// checkErrorText checks that our error contains the golden text, without the part that names a Go type of Cilium.
func checkErrorText(t *testing.T, err error, golden string) {
	t.Helper()
	if strings.HasPrefix(golden, "json: cannot unmarshal") {
		golden, _, _ = strings.Cut(golden, " into Go ")
	}
	if !strings.Contains(err.Error(), golden) {
		t.Fatalf("error is %q, want the text %q in it", err, golden)
	}
}

// checkRejected checks that the error is a RejectError with a reason, and returns it.
func checkRejected(t testing.TB, err error) *RejectError {
	t.Helper()
	var r *RejectError
	if !errors.As(err, &r) {
		t.Fatalf("%v is not a *RejectError but %T", err, err)
	}
	if r.Reason == "" || r.Err == nil {
		t.Fatalf("%+v has no reason", r)
	}
	return r
}

// tooLarge reports whether an entry was rejected for its size.
func tooLarge(err error) bool {
	r, ok := errors.AsType[*RejectError](err)
	return ok && r.Reason == ReasonTooLarge
}

// same compares two texts.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func base64Text(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// rule is one line of a table of string rules.
type rule[In, Out any] struct {
	Input  In
	OK     bool
	Output Out
	Error  string
	Note   string
}

// checkOutcome compares an error with a line of a table.
func checkOutcome(t *testing.T, err error, ok bool, text string) {
	t.Helper()
	if ok != (err == nil) {
		t.Fatalf("error is %v, want ok to be %v (%s)", err, ok, text)
	}
	if err != nil {
		checkErrorText(t, err, text)
	}
}
