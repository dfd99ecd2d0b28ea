package wire

import (
	"encoding/json"
	"testing"
)

// benchmarkIPs returns entries as writers publish them.
func benchmarkIPs() map[string]vector {
	return map[string]vector{
		"pod": {
			Key: "10.2.0.11",
			Value: `{"IP":"10.2.0.11","Mask":null,"HostIP":"192.168.2.10","ID":131172,"Key":0,"Metadata":"",` +
				`"K8sNamespace":"default","K8sPodName":"web-6c58b4d47-9x3b0","K8sServiceAccount":"default"}`,
		},
		"pod-ipv6": {
			Key: "fd02:0:0:1::11",
			Value: `{"IP":"fd02:0:0:1::11","Mask":null,"HostIP":"fd00:2::10","ID":131172,"Key":0,"Metadata":"",` +
				`"K8sNamespace":"default","K8sPodName":"web-6c58b4d47-9x3b0","K8sServiceAccount":"default"}`,
		},
		"pod-kvstore-mode-ports": {
			Key: "10.2.0.12",
			Value: `{"IP":"10.2.0.12","Mask":null,"HostIP":"192.168.2.10","ID":131173,"Key":3,` +
				`"Metadata":"cilium-global:default:node1:4021","K8sNamespace":"prod","K8sPodName":"db-0",` +
				`"NamedPorts":[{"Name":"admin","Port":9000,"Protocol":"UDP"},{"Name":"http","Port":80,"Protocol":"TCP"}]}`,
		},
		"cidr": {
			Key:   "10.9.0.0/16",
			Value: `{"IP":"10.9.0.0","Mask":"//8AAA==","HostIP":"","ID":131175,"Key":0,"Metadata":""}`,
		},
	}
}

func BenchmarkDecodeIP(b *testing.B) {
	for name, v := range benchmarkIPs() {
		value := []byte(v.Value)
		b.Run(name+"/fast", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeIP(v.Key, value, cluster2); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodeSlow(v.Key, value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, c := range map[string]struct {
		value  []byte
		decode func(value []byte) error
	}{
		"service":  {golden[[]vector](b, "services.json")[0].Base64, func(v []byte) error { _, err := DecodeService("default/rebel-base", v, cluster2); return err }},
		"node":     {golden[[]vector](b, "nodes.json")[2].Base64, func(v []byte) error { _, err := DecodeNode("node3.example.com", v, cluster2); return err }},
		"identity": {golden[[]vector](b, "identities.json")[0].Base64, func(v []byte) error { _, err := DecodeIdentity("131172", v, cluster2); return err }},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, c.decode(c.value))
			}
		})
	}
}

func BenchmarkEndpointSlice(b *testing.B) {
	value := golden[[]vector](b, "endpointslices.json")[7].Base64
	var s *EndpointSlice
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if s, err = DecodeEndpointSlice("default/hundred", value, cluster2); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Encode()
		}
	})
	b.Run("encode-many", func(b *testing.B) {
		e := NewSliceEncoder()
		defer e.Close()
		b.ReportAllocs()
		for b.Loop() {
			e.Encode(s)
		}
	})
}

func BenchmarkEncodeIP(b *testing.B) {
	var p IPIdentityPair
	must(b, json.Unmarshal([]byte(benchmarkIPs()["pod"].Value), &p))
	b.ReportAllocs()
	for b.Loop() {
		p.Encode()
	}
}
