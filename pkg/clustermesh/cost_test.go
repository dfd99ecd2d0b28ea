package clustermesh

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// costOf is what one decoder reads, how, and what makes it expensive.
type costOf struct {
	name   string                                       // of the key
	golden string                                       // file of values that Cilium wrote
	decode func(name string, value []byte) (any, error) // to what the tables keep
	pack   func([]byte) []byte                          // what is read of the value, as it is written; nil: the value itself
	warm   []byte                                       // makes it take the memory that it keeps
	worst  map[string]parts
}

// parts are a value with as many small parts as one likes. What pads it costs
// nothing when it is read.
type parts struct {
	before, after string
	unit          func(i int) string
	pad           func(n int) string
}

func (p parts) value(n, padding int) []byte {
	var b strings.Builder
	b.WriteString(p.before)
	for i := range n {
		b.WriteString(p.unit(i))
	}
	b.WriteString(p.after)
	b.WriteString(p.pad(padding))
	return []byte(b.String())
}

// costs is the table of decoders of what a remote cluster writes.
func costs(t testing.TB) map[string]costOf {
	e := wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1}
	v := &View{slices: wire.NewSliceDecoder()}
	encoder := packer(t)
	object := func(head, open string, unit func(int) string, last, end string) parts {
		return parts{
			before: "{" + head + open, unit: unit, after: last + end,
			pad: func(n int) string { return `,"x":"` + strings.Repeat("x", n) + `"}` },
		}
	}
	members := func(head, field, format, last string) parts {
		return object(head, `"`+field+`":{`, func(i int) string { return fmt.Sprintf(format, i) }, last, "}")
	}
	items := func(head, field, item string) parts {
		return object(head, `"`+field+`":[`, func(int) string { return item + "," }, item, "]")
	}
	const (
		node    = `"Name":"n","Cluster":"cluster2","ClusterID":2,`
		service = `"cluster":"cluster2","namespace":"ns","name":"s","clusterID":2,`
		export  = `"cluster":"cluster2","namespace":"ns","name":"s","exportCreationTimestamp":"2026-03-04T05:06:07Z","type":"Headless","sessionAffinity":"None",`
		ip      = `"IP":"10.0.0.1","ID":6,`
	)
	message := func(fields ...func([]byte, int) []byte) parts {
		return parts{
			before: string(protoText(protoText(protoText(protoVarint(protoText(nil, 1, "cluster2"), 2, 2), 3, "ns"), 4, "s"), 7, "IPv6")),
			unit: func(i int) string {
				var b []byte
				for _, f := range fields {
					b = f(b, i)
				}
				return string(b)
			},
			pad: func(n int) string { return string(protoText(nil, 99, strings.Repeat("x", n))) },
		}
	}
	endpoint := func(fields ...func([]byte, int) []byte) parts {
		return message(func(b []byte, i int) []byte {
			var inner []byte
			for _, f := range fields {
				inner = f(inner, i)
			}
			return protoText(b, 8, string(inner))
		})
	}
	text := func(n protowire.Number, format string) func([]byte, int) []byte {
		return func(b []byte, i int) []byte {
			if strings.Contains(format, "%") {
				return protoText(b, n, fmt.Sprintf(format, i))
			}
			return protoText(b, n, format)
		}
	}
	entry := func(n protowire.Number, format string) func([]byte, int) []byte {
		return func(b []byte, i int) []byte {
			return protoText(b, n, string(protoText(protoText(nil, 1, fmt.Sprintf(format, i)), 2, fmt.Sprintf(format, i))))
		}
	}
	port := func(int) string { return `{"Name":"a","Port":1,"Protocol":"TCP"},` }
	return map[string]costOf{
		"node": {
			name: "n", golden: "nodes.json", decode: anyOf(decodeNode(e)),
			worst: map[string]parts{
				"empty addresses": items(node, "IPAddresses", "{}"),
				"addresses":       items(node, "IPAddresses", `{"IP":"::"}`),
				"wrong addresses": items(node, "IPAddresses", "0"),
				"no addresses":    items(node, "IPAddresses", "null"),
				"empty CIDRs":     items(node, "IPv4SecondaryAllocCIDRs", "{}"),
				"CIDRs":           items(node, "IPv6SecondaryAllocCIDRs", `{"IP":"::","Mask":"//////////8AAAAAAAAAAA=="}`),
				"wrong CIDRs":     items(node, "IPv4SecondaryAllocCIDRs", "0"),
				"labels":          members(node, "Labels", `"%d":"",`, `"":""`),
				"wrong labels":    members(node, "Labels", `"%d":0,`, `"":""`),
				"equal labels":    members(node, "Labels", `"":"%d",`, `"":""`),
				"annotations":     members(node, "Annotations", `"%x":"a",`, `"":""`),
				"broken names":    members(node, "y", "\"%d"+strings.Repeat("\xff", 100)+`":"a",`, `"":""`),
				"broken texts":    members(node, "Labels", "\"%d\":\""+strings.Repeat("\xff", 100)+`",`, `"":""`),
				"long names":      object(node, "", func(int) string { return `"` + strings.Repeat("x", 1000) + `":1,` }, `"z":1`, ""),
				"escaped texts":   members(node, "Labels", `"\u0041%d":"`+strings.Repeat(`\"`, 100)+`",`, `"":""`),
				"unknown":         members(node, "y", `"%x":"a",`, `"":""`),
				"repeated":        object(node, "", func(int) string { return `"BootID":0,"IPv4HealthIP":"::","Labels":{"":""},` }, `"z":1`, ""),
				"nested":          object(node, `"y":`, func(int) string { return "[" }, "", ""),
				"nested objects":  object(node, `"y":`, func(int) string { return `{"":` }, "", ""),
			},
		},
		"service": {
			name: "ns/s", golden: "services.json", decode: anyOf(decodeService(e)),
			worst: map[string]parts{
				"backends without ports":        members(service, "backends", `"::%x":{},`, `"::":{}`),
				"backends with a null":          members(service, "backends", `"::%x":null,`, `"::":{}`),
				"backends with a port":          members(service, "backends", `"::%x":{"%[1]d":{}},`, `"::":{}`),
				"usual backends":                members(service, "backends", `"10.0.%d.1":{"%[1]d":{"Protocol":"TCP","Port":80}},`, `"::":{}`),
				"backends with null port":       members(service, "backends", `"::%x":{"%[1]d":null},`, `"::":{}`),
				"backends of one kind":          members(service, "backends", `"::%x":{"":{}},`, `"::":{}`),
				"wrong backends":                members(service, "backends", `"::%x":0,`, `"::":{}`),
				"bad backends":                  members(service, "backends", `"%x":{},`, `"::":{}`),
				"zoned backends":                members(service, "backends", `"::%%%x":{},`, `"::":{}`),
				"one backend in many spellings": members(service, "backends", `"0:0:0:%04x::1":{"%[1]d":{"Protocol":"TCP","Port":1}},`, `"::":{}`),
				"escaped backends":              members(service, "backends", `"\u003a:%x":{},`, `"::":{}`),
				"many ports":                    object(service, `"backends":{"::1":{`, func(i int) string { return fmt.Sprintf(`"%d":{},`, i) }, `"":{}}`, "}"),
				"usual ports":                   object(service, `"backends":{"::1":{`, func(i int) string { return fmt.Sprintf(`"%d":{"Protocol":"","Port":0},`, i) }, `"":{}}`, "}"),
				"zones":                         members(service, "zones", `"%x":{},`, `"":{}`),
				"zones with hints":              members(service, "zones", `"%x":{"zone":"a","forZones":[{}]},`, `"":{}`),
				"hints":                         object(service, `"zones":{"":{"forZones":[`, func(int) string { return "{}," }, "{}]}", "}"),
				"wrong hints":                   object(service, `"zones":{"":{"forZones":[`, func(int) string { return "0," }, "{}]}", "}"),
				"labels":                        members(service, "labels", `"%x":"",`, `"":""`),
				"wrong labels":                  members(service, "labels", `"%x":0,`, `"":""`),
				"hostnames":                     members(service, "hostnames", `"%x":"%[1]d",`, `"":""`),
				"repeated":                      object(service, "", func(i int) string { return fmt.Sprintf(`"backends":{"::%x":{}},"labels":{},"zones":{},`, i) }, `"z":1`, ""),
				"nested":                        object(service, `"y":`, func(int) string { return "[" }, "", ""),
			},
		},
		"slice": {
			name: "ns/s", golden: "endpointslices.json", decode: anyOf(v.decodeSlice(e)), pack: encoder, warm: warm(encoder),
			worst: map[string]parts{
				"empty endpoints":   endpoint(),
				"addresses":         endpoint(text(1, "::%x")),
				"more addresses":    endpoint(text(1, "::%x"), text(1, "::a:%x"), text(1, "::b:%x")),
				"equal addresses":   endpoint(text(1, "::")),
				"hostnames":         endpoint(text(1, "::%x"), text(3, "%x")),
				"hostnames alone":   endpoint(text(3, "%x")),
				"nodes":             endpoint(text(1, "::%x"), text(6, "n%x")),
				"nodes and zones":   endpoint(text(1, "::%x"), text(6, "m%x"), text(7, "z%x")),
				"node as hostname":  endpoint(text(1, "::%x"), text(3, "h%x"), text(6, "h%x")),
				"conditions":        endpoint(text(2, "\x08\x01\x10\x01\x18\x01")),
				"hints":             endpoint(text(8, "\x0a\x00\x0a\x00")),
				"hinted zones":      endpoint(text(8, "\x0a\x03\x0a\x01a\x0a\x03\x0a\x01b\x0a\x03\x0a\x01c\x0a\x03\x0a\x01d\x0a\x03\x0a\x01e")),
				"topology":          endpoint(entry(5, "%x")),
				"many addresses":    message(func(b []byte, i int) []byte { return protoText(b, 8, strings.Repeat("\x0a\x03::1", 100)) }),
				"labels":            message(entry(5, "l%x")),
				"annotations":       message(entry(6, "a%x")),
				"equal annotations": message(entry(6, "a")),
				"ports":             message(text(9, "")),
				"usual ports":       message(text(9, "\x18\x50")),
				"ports with names": message(func(b []byte, i int) []byte {
					return protoText(b, 9, string(protoVarint(protoText(nil, 1, fmt.Sprint(i)), 3, uint64(i))))
				}),
				"repeated": message(text(1, "cluster2"), text(3, "n"), text(3, "ns")),
				"unknown":  message(text(99, "x")),
			},
		},
		"export": {
			name: "ns/s", golden: "serviceexports.json", decode: anyOf(decodeExport(e)),
			worst: map[string]parts{
				"ports":       items(export, "ports", "{}"),
				"usual ports": items(export, "ports", `{"port":1}`),
				"wrong ports": items(export, "ports", "0"),
				"app":         items(export, "ports", `{"appProtocol":""}`),
				"families":    items(export, "ipFamilies", `""`),
				"labels":      members(export, "labels", `"%x":"",`, `"":""`),
				"old labels":  members(export, "Labels", `"%x":"",`, `"":""`),
				"times":       object(export, "", func(int) string { return `"exportCreationTimestamp":"2026-03-04T05:06:07Z",` }, `"z":1`, ""),
				"policies": object(export, "", func(int) string {
					return `"trafficDistribution":"PreferClose","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":1}},`
				}, `"z":1`, ""),
			},
		},
		"identity": {
			name: "131072", golden: "identities.json", decode: anyOf(decodeIdentity(e)),
			worst: map[string]parts{
				"labels":     labelParts(func(i int) string { return fmt.Sprintf("%x;", i) }),
				"one letter": labelParts(func(int) string { return "a;" }),
				"empty":      labelParts(func(int) string { return ";" }),
				"reserved":   labelParts(func(int) string { return "$a;" }),
				"usual":      labelParts(func(i int) string { return fmt.Sprintf("k8s:%x=b;", i) }),
			},
		},
		"ip": {
			name: "10.0.0.1", golden: "ips.json", decode: anyOf(decodeIP(e)),
			worst: map[string]parts{
				"ports":       items(ip, "NamedPorts", `{"Name":"a","Port":1}`),
				"empty ports": items(ip, "NamedPorts", "{}"),
				"wrong ports": items(ip, "NamedPorts", "0"),
				"usual ports": {
					before: `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":6,"Key":0,"Metadata":"","NamedPorts":[`, unit: port, after: `{"Name":"a","Port":1,"Protocol":"`,
					pad: func(n int) string { return strings.Repeat("{", n) + `"}]}` },
				},
			},
		},
		"cluster configuration": {
			name: "", golden: "clusterconfigs.json",
			decode: func(_ string, value []byte) (any, error) { return wire.DecodeClusterConfig(value) },
			worst: map[string]parts{
				"wrong":  object(`"id":2,`, "", func(int) string { return `"id":"",` }, `"z":1`, ""),
				"inner":  object(`"id":2,`, `"capabilities":{`, func(int) string { return `"serviceExportsEnabled":true,` }, `"z":1`, "}"),
				"nested": object(`"id":2,`, `"y":`, func(int) string { return "[" }, "", ""),
			},
		},
	}
}

func labelParts(unit func(int) string) parts {
	return parts{before: "k8s:io.cilium.k8s.policy.cluster=cluster2;", unit: unit, pad: func(n int) string { return "k8s:x=" + strings.Repeat("x", n) }}
}

func anyOf[T any](decode func(string, []byte) (*T, error)) func(string, []byte) (any, error) {
	return func(name string, value []byte) (any, error) {
		return decode(name, value)
	}
}

// warm returns a value that makes all buffers of a decoder as large as they become.
func warm(pack func([]byte) []byte) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 512<<10)
	for i := range text {
		text[i] = "abcdefgh"[random.IntN(8)*random.IntN(2)]
	}
	return pack(text)
}

// packer returns what compresses a message.
func packer(t testing.TB) func([]byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return func(plain []byte) []byte { return w.EncodeAll(plain, nil) }
}

func protoText(b []byte, n protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), text)
}

func protoVarint(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// ratio measures how many times its size a value costs: all memory that is
// allocated until it is what the tables keep, garbage included. The size of a
// compressed value is what it unpacks to, since that is what is read; see
// TestACompressedValueIsBounded for how much one value may be. Memory that a
// decoder takes once and keeps does not count.
func (c costOf) ratio(plain []byte) (ratio float64, err error) {
	value := plain
	if c.pack != nil {
		value = c.pack(plain)
	}
	for range runtime.GOMAXPROCS(0) {
		_, _ = c.decode("", c.warm)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	kept, err := c.decode(c.name, value)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(max(len(plain), wire.MinCharged)), err
}

// refuses tells whether a value is too large.
func (c costOf) refuses(plain []byte) bool {
	if c.pack != nil {
		plain = c.pack(plain)
	}
	_, err := c.decode(c.name, plain)
	return tooLarge(err)
}

// worstRatio is ratio for a value of which no text is interned, and without what
// others allocate meanwhile.
func (c costOf) worstRatio(plain []byte) (ratio float64, err error) {
	for i := range 3 {
		runtime.GC() // drops texts that are no longer used
		runtime.GC()
		if r, e := c.ratio(plain); i == 0 || r < ratio {
			ratio, err = r, e
		}
		if ratio <= maxRatio {
			break
		}
	}
	return ratio, err
}

func tooLarge(err error) bool {
	r, ok := errors.AsType[*wire.RejectError](err)
	return ok && r.Reason == wire.ReasonTooLarge
}

// The worst of each kind is the most of it that is just not refused.
func TestNoValueCostsMoreThanItsBytesAllow(t *testing.T) {
	sizes := []int{1, 20, 100, 300, 2000, 20000}
	if testing.Short() {
		sizes = []int{200}
	}
	for name, c := range costs(t) {
		for kind, p := range c.worst {
			for _, n := range sizes {
				padding := leastFalse(2048+400*n, func(padding int) bool { return c.refuses(p.value(n, padding)) })
				for _, padding := range []int{0, padding} {
					if r, err := c.worstRatio(p.value(n, padding)); r > maxRatio {
						t.Errorf("%s: %d %s with padding %d cost %.1f times their bytes (%v)", name, n, kind, padding, r, err)
					}
				}
			}
		}
	}
}

// A search that keeps what costs more than before finds nothing worse.
func TestASearchFindsNoCostlierValue(t *testing.T) {
	steps := 5000
	if testing.Short() {
		steps = 100
	}
	for name, c := range costs(t) {
		s := search{random: rand.New(rand.NewPCG(1, 2)), cost: c, tokens: tokens()}
		for _, seed := range c.seeds(t) {
			s.add(seed)
		}
		for range steps {
			s.step()
		}
		if r, err := c.worstRatio(s.best()); r > maxRatio {
			t.Errorf("%s costs %.1f times its bytes (%v): %q", name, r, err, s.best())
		}
	}
}

// tokens are small parts of values.
func tokens() [][]byte {
	var all [][]byte
	for _, text := range []string{
		"{},", "0,", `"",`, "null,", "[", "]", "{", "}", `"":`, `"a":{},`, `"::1":{},`, `{"":{}},`, "[[", `"\u0041"`, ";", "a;",
		"\x42\x00", "\x4a\x00", "\x2a\x00", "\x32\x00", "\x0a\x00", "\x12\x02\x08\x01", "\x1a\x01a", "\x3a\x01b",
	} {
		all = append(all, []byte(text))
	}
	return all
}

// search looks for values that cost much: it changes one of the costliest that
// it knows, and keeps the change if it costs more.
type search struct {
	random *rand.Rand
	cost   costOf
	tokens [][]byte
	pool   []costly // at most poolOfSearch, the costliest first
}

type costly struct {
	value []byte
	ratio float64
}

const poolOfSearch = 16

func (s *search) best() []byte { return s.pool[0].value }

func (s *search) add(value []byte) {
	r, _ := s.cost.ratio(value)
	at, _ := slices.BinarySearchFunc(s.pool, r, func(c costly, r float64) int { return cmp.Compare(r, c.ratio) })
	s.pool = slices.Insert(s.pool, at, costly{value, r})
	s.pool = s.pool[:min(len(s.pool), poolOfSearch)]
}

func (s *search) step() {
	value := slices.Clone(s.any().value)
	for range 1 + s.random.IntN(3) {
		value = s.change(value)
	}
	s.add(value)
}

func (s *search) any() costly { return s.pool[s.random.IntN(len(s.pool))] }

// change repeats, cuts, replaces or inserts a part of a value.
func (s *search) change(value []byte) []byte {
	i, j := s.part(value)
	const most = 16 << 10
	switch s.random.IntN(5) {
	case 0:
		times := 1 + s.random.IntN(200)
		if (j-i)*times > most {
			times = 1
		}
		return slices.Insert(value, i, bytes.Repeat(value[i:j], times)...)[:min(len(value)+(j-i)*times, most)]
	case 1:
		return slices.Delete(value, i, j)
	case 2:
		from := s.any().value
		k, l := s.part(from)
		return slices.Replace(value, i, j, from[k:l]...)
	case 3:
		token := s.tokens[s.random.IntN(len(s.tokens))]
		return slices.Insert(value, i, bytes.Repeat(token, 1+s.random.IntN(100))...)
	default:
		if i < len(value) {
			value[i] = byte(s.random.Uint32())
		}
		return value
	}
}

// part picks a part of a value, mostly a short one.
func (s *search) part(value []byte) (i, j int) {
	i = s.random.IntN(len(value) + 1)
	return i, i + s.random.IntN(min(len(value)-i, 1+s.random.IntN(200))+1)
}

// seeds are what Cilium wrote, and a little of the worst that we know.
func (c costOf) seeds(t testing.TB) [][]byte {
	b, err := os.ReadFile(filepath.Join("..", "wire", "testdata", "golden", c.golden))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Value   []byte `json:"value_base64"`
		Message []byte `json:"uncompressed_base64"`
	}
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, v := range vectors {
		if c.pack != nil {
			v.Value = v.Message
		}
		all = append(all, v.Value)
	}
	for _, p := range c.worst {
		all = append(all, p.value(20, 10))
	}
	slices.SortFunc(all, bytes.Compare) // those of a map come in any order
	return all
}

// FuzzCost: nothing that a remote cluster writes costs more than [wire.MaxCost]
// times its bytes.
func FuzzCost(f *testing.F) {
	all := costs(f)
	for name, c := range all {
		for _, seed := range c.seeds(f) {
			f.Add(name, seed)
		}
	}
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		c, known := all[name]
		if !known {
			return
		}
		if r, _ := c.ratio(value); r > maxRatio {
			if r, err := c.worstRatio(value); r > maxRatio {
				t.Errorf("%s costs %.1f times its bytes (%v)", name, r, err)
			}
		}
	})
}

// leastFalse returns the least number below a bound for which a falling condition does
// not hold; the bound when there is none.
func leastFalse(bound int, holds func(int) bool) int {
	low := 0
	for low < bound {
		if mid := (low + bound) / 2; holds(mid) {
			low = mid + 1
		} else {
			bound = mid
		}
	}
	return low
}
