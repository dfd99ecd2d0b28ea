package clustermesh

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// costs returns the decoders of the values that a remote cluster writes, by name.
func costs(t testing.TB) map[string]costOf {
	e := wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1}
	v := &Ingest{slices: wire.NewSliceDecoder()}
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
				"frontends":                     members(service, "frontends", `"10.0.%d.1":{"%[1]d":{"Protocol":"TCP","Port":80}},`, `"::":{}`),
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

// warm returns a value that makes all buffers of a decoder as large as they can get.
func warm(pack func([]byte) []byte) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 512<<10)
	for i := range text {
		text[i] = "abcdefgh"[random.IntN(8)*random.IntN(2)]
	}
	return pack(text)
}

// packer returns a function that compresses a message.
func packer(t testing.TB) func([]byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	must(t, err)
	t.Cleanup(func() { w.Close() })
	return func(plain []byte) []byte { return w.EncodeAll(plain, nil) }
}

func protoText(b []byte, n protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), text)
}

func protoVarint(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}
