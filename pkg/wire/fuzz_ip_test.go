package wire

import (
	"encoding/json"
	"reflect"
	"testing"
)

// oddIPs are entries just outside and just inside the forms that the fast path accepts.
var oddIPs = [][2]string{
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":131072,"Key":0,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":131072,"Key":0,"Metadata":""} `},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":131072,"Key":0,"Metadata":""}}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":131072,"Key":0,"Metadata":"","IP":"10.0.0.1"}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":131072,"Key":0,"Metadata":"","ip":"10.0.0.2"}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":131072,"Key":0,"Metadata":"","x":{"IP":[]}}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"::","ID":131072,"Key":0,"Metadata":"\u0000"}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":131072,"Key":0,"Metadata":"é","K8sPodName":"é"}`},
	{"10.0.0.1", "{\"IP\":\"10.0.0.1\",\"Mask\":null,\"HostIP\":\"\",\"ID\":131072,\"Key\":0,\"Metadata\":\"\xff\"}"},
	{"10.0.0.1", "{\"IP\":\"10.0.0.1\",\"Mask\":null,\"HostIP\":\"\",\"ID\":131072,\"Key\":0,\"Metadata\":\"\x1f\"}"},
	{"10.0.0.1", "{\"IP\":\"10.0.0.1\",\"Mask\":null,\"HostIP\":\"\",\"ID\":131072,\"Key\":0,\"Metadata\":\"\x7f\"}"},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":0131072,"Key":0,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":131072.0,"Key":0,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":1e1,"Key":-0,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":4294967295,"Key":255,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":4294967296,"Key":256,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"010.0.0.1","ID":1,"Key":0,"Metadata":""}`},
	{"010.0.0.1", `{"IP":"010.0.0.1","Mask":null,"HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"10.0.0.256", `{"IP":"10.0.0.256","Mask":null,"HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"::ffff:10.0.0.1","Mask":null,"HostIP":"::ffff:10.0.0.1","ID":1,"Key":0,"Metadata":""}`},
	{"::ffff:a00:1", `{"IP":"::ffff:a00:1","Mask":null,"HostIP":"::ffff:a00:1","ID":1,"Key":0,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"::ffff:a00:1","Mask":null,"HostIP":"::ffff:a00:1","ID":1,"Key":0,"Metadata":""}`},
	{"fd02:0::1", `{"IP":"fd02:0::1","Mask":null,"HostIP":"FD02:0::1","ID":1,"Key":0,"Metadata":""}`},
	{"fd02::1", `{"IP":"fd02::1","Mask":null,"HostIP":"FD02:0::1","ID":1,"Key":0,"Metadata":""}`},
	{"fe80::1%eth0", `{"IP":"fe80::1%eth0","Mask":null,"HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"10.9.0.0/16", `{"IP":"10.9.0.0","Mask":"//8AAA==","HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"10.9.0.0/16", `{"IP":"10.9.0.0","Mask":[255,255,0,0],"HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"10.9.0.0/0", `{"IP":"10.9.0.0","Mask":"","HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"10.9.0.0/0", `{"IP":"10.9.0.0","Mask":"/wD/AA==","HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"10.9.0.0/64", `{"IP":"10.9.0.0","Mask":"//////////8AAAAAAAAAAA==","HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"fd09::/136", `{"IP":"fd09::","Mask":"///////////////////////v","HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"fd09::/64", `{"IP":"fd09::","Mask":"//////////8AAAAAAAAAAA==","HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":1,"Key":0,"Metadata":"","NamedPorts":[]}`},
	{"10.0.0.1", `{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":1,"Key":0,"Metadata":"","NamedPorts":null}`},
	{
		"10.0.0.1",
		`{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":1,"Key":0,"Metadata":"","K8sNamespace":"a","K8sPodName":"b",` +
			`"NamedPorts":[{"Name":"a","Port":1,"Protocol":"tcp"},{"Name":"-","Port":1,"Protocol":"TCP"},` +
			`{"Name":"c","Port":65536,"Protocol":"UDP"}]}`,
	},
	{"10.0.0.1", `null`},
	{"<nil>", `{"IP":"","Mask":null,"HostIP":"","ID":1,"Key":0,"Metadata":""}`},
	{"", `{"IP":"","Mask":null,"HostIP":"","ID":1,"Key":0,"Metadata":""}`},
}

func addIPSeeds(f *testing.F) {
	for _, v := range golden[[]vector](f, "ips.json") {
		var p IPIdentityPair
		must(f, json.Unmarshal(v.Base64, &p))
		f.Add(p.Name(), v.Base64)
	}
	for _, v := range golden[[]decodeVector](f, "ips_decode.json") {
		f.Add(v.Name, v.bytes(f))
	}
	for _, v := range benchmarkIPs() {
		f.Add(v.Key, []byte(v.Value))
	}
	for _, v := range oddIPs {
		f.Add(v[0], []byte(v[1]))
	}
}

// FuzzDecodeIP compares the fast path with encoding/json: what the fast path accepts, encoding/json must accept with
// the same result.
func FuzzDecodeIP(f *testing.F) {
	addIPSeeds(f)
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		slow, err := decodeSlow(name, value)
		if fast, ok := decodeFast(name, value); ok {
			if err != nil {
				t.Fatalf("the fast path accepts %s = %q as %+v, encoding/json says: %v", name, value, fast, err)
			}
			if !reflect.DeepEqual(fast, slow) {
				t.Fatalf("%s = %q:\nfast %+v\nslow %+v", name, value, fast, slow)
			}
		}
		ip, err := DecodeIP(name, value, cluster2)
		if err != nil {
			checkRejected(t, err)
			if !reflect.DeepEqual(ip, IP{}) {
				t.Fatalf("a rejected entry comes with data: %+v", ip)
			}
			return
		}
		if got := nameOf(ip); got != name {
			t.Fatalf("the entry under %q has the name %q", name, got)
		}
		if ip.Identity == IdentityHost || ip.Identity >= IdentityReservedEnd && !(Layout{}).Contains(2, ip.Identity) {
			t.Fatalf("identity %d was let through", ip.Identity)
		}
	})
}
