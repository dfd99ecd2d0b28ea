package codec

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// mutator spoils entries, so that some of them have to be refused.
type mutator struct{ r *rand.Rand }

// entry spoils a valid entry: mostly its value, else its key.
func (m mutator) entry(kind model.Kind, e model.KV) model.KV {
	switch {
	case m.r.IntN(10) == 0:
		e.Key = m.key(e.Key)
	case kind == model.EndpointSlices && m.r.IntN(3) > 0:
		e.Value = m.message(e.Value)
	case kind == model.EndpointSlices || kind == model.Identities || m.r.IntN(5) == 0:
		e.Value = m.text(e.Value)
	default:
		e.Value = m.json(e.Value)
	}
	return e
}

// key spoils the last parts of a key.
func (m mutator) key(key string) string {
	return m.pick(
		key+"x", key+"/deeper", key+"/", key+"/32", key[:len(key)-1], key[:strings.LastIndexByte(key, '/')+1]+"other",
		key[:strings.LastIndexByte(key, '/')+1]+"0"+key[strings.LastIndexByte(key, '/')+1:], strings.ToUpper(key),
		key[:strings.LastIndexByte(key, '/')]+"/"+key[strings.LastIndexByte(key, '/'):],
	)
}

func (m mutator) pick(of ...string) string { return of[m.r.IntN(len(of))] }

// text spoils a value as bytes.
func (m mutator) text(v []byte) []byte {
	v = slices.Clone(v)
	if len(v) == 0 {
		return []byte(m.pick("", "x", "{}"))
	}
	at := m.r.IntN(len(v))
	switch m.r.IntN(9) {
	case 0:
		return nil
	case 1:
		return v[:at] // truncated
	case 2:
		return append(v, m.pick(" ", "\n", "}", "x", "\x00", `{"name":"other"}`)...)
	case 3:
		return append([]byte(m.pick(" ", "\ufeff", "x", "[", "\x00")), v...)
	case 4:
		v[at] ^= 1 << m.r.IntN(8)
		return v
	case 5:
		v[at] = m.pick("\xff", "\x00", `"`, "{", ";", ":", "=", "$")[0]
		return v
	case 6: // twice
		return append(v, v...)
	case 7: // a field twice, the first or the last
		double := `"` + m.pick("cluster", "Cluster", "name", "Name", "IP", "ID", "id", "clusterID", "ClusterID", "labels", "Labels") +
			`":` + m.pick("null", `"other"`, "0", "7", `{"x":"y"}`, `""`)
		if m.r.IntN(2) == 0 {
			return bytes.Replace(v, []byte("{"), []byte("{"+double+","), 1)
		}
		return append(bytes.TrimSuffix(v, []byte("}")), ","+double+"}"...)
	default:
		return []byte(m.pick("null", "{}", "[]", `""`, "0", "true", "k8s:a=b;", ";", "=", "\x28\xb5\x2f\xfd"))
	}
}

// junk are values that a field should not have, or may have, depending on its type.
func junk() []any {
	return []any{
		nil, "", " ", "other", "0", "c2", "c3", 0, 1, 2, 3, -1, 255, 256, 65535, 65536, 4294967295, 4294967296, 1.5,
		json.Number("1e2"), json.Number("1e400"), json.Number("-0"), json.Number("2.0"), true, false,
		[]any{},
		map[string]any{},
		[]any{nil},
		map[string]any{"": nil},
		map[string]any{"x": "y"},
		map[string]any{"x": 1},
		[]any{"x"},
		"10.0.0.1", "10.0.0.256", "10.0.0.0/8", "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.1@1", "010.0.0.1", "::1",
		"AAAA", "////AA==", "/////w==", "AP8A/w==", "not base64!", "//////////8AAAAAAAAAAA==", "TCP", "tcp", "ANY", "NONE",
		"2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5+01:00", "2024-13-01T00:00:00Z", "0001-01-01T00:00:00Z",
		"ClusterSetIP", "Headless", "ClientIP", "None", "Local", "PreferClose", "IPv4", "endpointslices-only",
		map[string]any{"10.0.0.1": map[string]any{"": nil}},
		map[string]any{"10.0.0.1%x": map[string]any{}},
		map[string]any{"::ffff:1.2.3.4": nil},
		map[string]any{"IP": "10.0.0.0", "Mask": "////AA=="},
		map[string]any{"IP": "", "Mask": nil},
	}
}

// json spoils one field of a value, at any depth.
func (m mutator) json(v []byte) []byte {
	var root any
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return m.text(v)
	}
	m.node(root, 0)
	spoilt, err := json.Marshal(root)
	if err != nil {
		return m.text(v)
	}
	return spoilt
}

// node spoils an element of an object or of a list, at any depth.
func (m mutator) node(n any, depth int) {
	switch n := n.(type) {
	case map[string]any:
		keys := make([]string, 0, len(n))
		for k := range n {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		if len(keys) == 0 {
			n["x"] = m.value()
			return
		}
		k := keys[m.r.IntN(len(keys))]
		if depth < 6 && m.r.IntN(2) == 0 && nested(n[k]) {
			m.node(n[k], depth+1)
			return
		}
		m.field(n, k)
	case []any:
		i := m.r.IntN(len(n))
		if m.r.IntN(2) == 0 && nested(n[i]) {
			m.node(n[i], depth+1)
			return
		}
		n[i] = m.value()
	}
}

// nested reports whether it is an object or a list with contents.
func nested(n any) bool {
	switch n := n.(type) {
	case map[string]any:
		return true
	case []any:
		return len(n) > 0
	default:
		return false
	}
}

// field spoils a field of an object.
func (m mutator) field(n map[string]any, k string) {
	old := n[k]
	switch m.r.IntN(8) {
	case 0:
		delete(n, k)
	case 1: // with other upper and lower case
		delete(n, k)
		n[m.pick(strings.ToUpper(k), strings.ToLower(k), strings.ToTitle(k), k+" ", "X"+k)] = old
	case 2: // also with other upper and lower case
		n[m.pick(strings.ToUpper(k), strings.ToLower(k), "unknown", "")] = m.value()
	default:
		n[k] = m.value()
	}
}

func (m mutator) value() any {
	of := junk()
	return of[m.r.IntN(len(of))]
}
