package clustermesh

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
)

// some is the number of objects of each kind in a patient.
const some = 5

// connections returns the errors that can occur on the way to the etcd.
func connections() []illness {
	return []illness{
		{
			"an authority that did not sign",
			func(p *patient) func() {
				ca := filepath.Join(p.t.TempDir(), "ca.crt")
				must(p.t, copyFile(etcdtest.NewCerts(p.t).CAFile, ca))
				cert, key := p.ward.certs.Client(p.t, p.name)
				p.on(p.ward.secure, "trusted-ca-file: "+ca, "cert-file: "+cert, "key-file: "+key)
				return func() { must(p.t, copyFile(p.ward.certs.CAFile, ca)) }
			},
			remotecluster.Connecting,
			[]string{"https://127.0.0.1:", "unknown authority", "trusted-ca-file does not hold the authority"},
		},
		{
			"a certificate of the server that has expired",
			func(p *patient) func() {
				certs := etcdtest.NewCerts(p.t)
				certs.SetServer(p.t, []string{"127.0.0.1"}, pki.Expired())
				cert, key := certs.Client(p.t, p.name)
				p.on(etcdtest.Start(p.t, etcdtest.WithTLS(certs)), "trusted-ca-file: "+certs.CAFile, "cert-file: "+cert, "key-file: "+key)
				return func() { certs.SetServer(p.t, []string{"127.0.0.1"}) }
			},
			remotecluster.Connecting,
			[]string{"https://127.0.0.1:", "has expired", "renew the server's certificate, or set the clock"},
		},
		{
			"a certificate of ours that has expired",
			func(p *patient) func() {
				cert, key := p.ward.certs.Client(p.t, p.name, pki.Expired())
				p.on(p.ward.secure, "trusted-ca-file: "+p.ward.certs.CAFile, "cert-file: "+cert, "key-file: "+key)
				return func() { p.ward.certs.Client(p.t, p.name) }
			},
			remotecluster.Connecting,
			[]string{"https://127.0.0.1:", "refuses our client certificate", "check cert-file, its dates"},
		},
		{
			"a wrong password",
			func(p *patient) func() {
				etcd := etcdtest.Start(p.t)
				p.on(etcd, "username: reader", "password: wrong")
				p.enableAuth(etcd, etcdserver.User{Name: "reader", Password: "right", Role: etcdserver.LocalReader()})
				return func() { p.client(etcd, "username: reader", "password: right") }
			},
			remotecluster.Connecting,
			[]string{"http://127.0.0.1:", "authentication failed", "check username and password"},
		},
		{
			"a role that covers too little",
			func(p *patient) func() {
				etcd := etcdtest.Start(p.t)
				p.on(etcd, "username: reader", "password: right")
				p.enableAuth(etcd, etcdserver.User{Name: "reader", Password: "right", Role: []etcdserver.Range{etcdserver.Prefix("cilium/.heartbeat")}})
				return func() {
					prefix := "cilium/"
					_, err := p.kv.RoleGrantPermission(p.ctx(), "reader", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermRead))
					must(p.t, err)
				}
			},
			remotecluster.Syncing,
			[]string{"cilium/cluster-config/", "permission denied", "the etcd user's role does not cover this key"},
		},
		{
			"a name that does not resolve",
			func(p *patient) func() {
				p.fill(0, some)
				_, port, err := net.SplitHostPort(p.ward.plain.Addr())
				must(p.t, err)
				endpoint := "http://c2.mesh.cilium.io:" + port
				p.write("endpoints:", "- "+endpoint)
				return func() {
					p.write("endpoints:", "- "+endpoint, "cilium-host-aliases:", "- hostname: c2.mesh.cilium.io", "  ips: [127.0.0.1]")
				}
			},
			remotecluster.Connecting,
			[]string{"http://c2.mesh.cilium.io:", "no such host", "check DNS, or add the name to cilium-host-aliases"},
		},
		{
			"an endpoint that accepts and says nothing",
			func(p *patient) func() {
				gate := p.gate()
				gate.Freeze()
				p.write("endpoints:", "- http://"+gate.Addr())
				return gate.Thaw
			},
			remotecluster.Connecting,
			[]string{"http://127.0.0.1:", "opening a plain text connection to", "nothing came back", "accepts connections and does not answer"},
		},
		{
			"an endpoint where nothing listens",
			func(p *patient) func() {
				gate := p.gate()
				gate.Shut()
				p.write("endpoints:", "- http://"+gate.Addr())
				return func() { must(p.t, gate.Open(p.ward.plain.Addr())) }
			},
			remotecluster.Connecting,
			[]string{"http://127.0.0.1:", "connection refused", "nothing listens there", "is it the right port?"},
		},
		{
			"a scheme without TLS",
			func(p *patient) func() {
				cert, key := p.ward.certs.Client(p.t, p.name)
				lines := []string{"trusted-ca-file: " + p.ward.certs.CAFile, "cert-file: " + cert, "key-file: " + key}
				p.kv = p.ward.secure.Local()
				p.fill(0, some)
				p.write(append(lines, "endpoints:", "- http://"+p.ward.secure.Addr())...)
				return func() { p.client(p.ward.secure, lines...) }
			},
			remotecluster.Connecting,
			[]string{"http://127.0.0.1:", "the endpoint may need https:// instead of http://"},
		},
	}
}

// on fills an etcd and makes it the etcd of the cluster.
func (p *patient) on(etcd *etcdtest.Server, lines ...string) {
	p.t.Helper()
	p.kv = etcd.Local()
	p.fill(0, some)
	p.client(etcd, lines...)
}

// client writes a client file for an etcd.
func (p *patient) client(etcd *etcdtest.Server, lines ...string) {
	p.t.Helper()
	p.write(append(lines, "endpoints:", "- "+etcd.Endpoint())...)
}

// enableAuth enables authentication on an etcd that has the cluster's data.
func (p *patient) enableAuth(etcd *etcdtest.Server, user etcdserver.User) {
	p.t.Helper()
	etcd.EnableAuth(p.t, user)
	p.kv = etcd.ClientAs(p.t, "root", "root")
}

// gate returns a gate to the plain etcd, which has the cluster's data.
func (p *patient) gate() *etcdserver.Gate {
	p.t.Helper()
	p.fill(0, some)
	gate := etcdserver.NewGate("127.0.0.1:0")
	must(p.t, gate.Open(p.ward.plain.Addr()))
	p.ward.t.Cleanup(gate.Close)
	return gate
}

// files returns the errors that a client file can have.
func files() []illness {
	plain := func(lines ...string) func(*patient) func() {
		return func(p *patient) func() {
			p.fill(0, some)
			p.write(lines...)
			return func() { p.client(p.ward.plain) }
		}
	}
	return []illness{
		{
			"a key file that appears later",
			func(p *patient) func() {
				cert, key := p.ward.certs.Client(p.t, p.name)
				must(p.t, os.Rename(key, key+".later"))
				p.on(p.ward.secure, "trusted-ca-file: "+p.ward.certs.CAFile, "cert-file: "+cert, "key-file: "+key)
				return func() { must(p.t, os.Rename(key+".later", key)) }
			},
			remotecluster.Failed,
			[]string{"client file", "a-key-file-that-appears-later", "key-file: ", "no such file or directory"},
		},
		{
			"YAML that is none", plain("endpoints: [http://127.0.0.1:1", "username: x"),
			remotecluster.Failed,
			[]string{"client file", "yaml-that-is-none", "yaml: line 1", "did not find expected ',' or ']'"},
		},
		{
			"an endpoint without a port", plain("endpoints:", "- https://c2.mesh.cilium.io"),
			remotecluster.Failed,
			[]string{"client file", `endpoints: "https://c2.mesh.cilium.io"`, "it must be a URL with host and port, such as"},
		},
		{
			"an option that is misspelt", plain("endpoints:", "- https://c2.mesh.cilium.io:2379", "trusted-ca: /x"),
			remotecluster.Failed,
			[]string{"client file", "trusted-ca: unknown option"},
		},
	}
}

// configurations returns the errors that the configuration of a cluster can have.
func configurations() []illness {
	config := func(value string) func(*patient) func() {
		return func(p *patient) func() {
			p.fill(0, some)
			key := wire.ClusterConfigKey(p.name)
			if value == "" {
				p.delete(key)
			} else {
				p.put(key, []byte(value))
			}
			p.client(p.ward.plain)
			return func() { p.fill(0, 0) }
		}
	}
	return []illness{
		{
			"an ID that another one has", config(`{"id":1,"capabilities":{"cached":true}}`),
			remotecluster.Failed,
			[]string{"cluster ID 1 is already used by cluster \"beside\"", "give one of the two another"},
		},
		{
			"an ID that is our own", config(`{"id":250,"capabilities":{"cached":true}}`),
			remotecluster.Failed,
			[]string{"cluster ID 250", "our own cluster \"own\"", "give"},
		},
		{
			"an ID of 0", config(`{"id":0,"capabilities":{"cached":true}}`),
			remotecluster.Failed,
			[]string{"cilium/cluster-config/an-id-of-0", "not valid", "1..255", "cluster.id"},
		},
		{
			"an ID beyond 255", config(`{"id":300,"capabilities":{"cached":true}}`),
			remotecluster.Failed,
			[]string{"cilium/cluster-config/an-id-beyond-255", "ID 300", "1..255", "--max-connected-clusters"},
		},
		{
			"an unknown mode of slices", config(`{"id":200,"capabilities":{"cached":true,"endpointSlicesExportMode":"both"}}`),
			remotecluster.Failed,
			[]string{"cilium/cluster-config/an-unknown-mode-of-slices", `"both"`, "services-and-endpointslices"},
		},
		{
			"a configuration that is not there", config(""),
			remotecluster.Syncing,
			[]string{"waiting for the cluster configuration cilium/cluster-config/", "is this the etcd of that cluster"},
		},
		{
			"a configuration that is none", config("garbage"),
			remotecluster.Syncing,
			[]string{"cilium/cluster-config/a-configuration-that-is-none", "cannot be read", "invalid character 'g'", "check what writes it"},
		},
		{
			"canaries that are not there",
			func(p *patient) func() {
				p.fill(0, some)
				key := wire.SyncedKey(p.name, wire.IPs, true)
				p.delete(key)
				p.client(p.ward.plain)
				return func() { p.put(key, []byte("now")) }
			},
			remotecluster.Syncing,
			[]string{"waiting for the remote cluster to have written its ips", "cilium/synced/canaries-that-are-not-there/"},
		},
	}
}

// values returns the errors that entries can have. Meanwhile the rest of the cluster is used, with the last good value
// of the entry.
func values() []illness {
	bad := func(name string, r wire.Resource, key string, value func(p *patient) []byte, says ...string) illness {
		return illness{name, func(p *patient) func() {
			p.fill(0, some)
			p.slice(0, "a")
			p.configure(wire.Capabilities{MaxConnectedClusters: 255, Cached: true, SyncedCanaries: true, EndpointSlicesExportMode: wire.EndpointSlicesBoth})
			p.client(p.ward.plain)
			p.w.inState(p.name, remotecluster.Ready)
			p.converges()
			whole := p.key(r, strings.NewReplacer("ID", fmt.Sprint(p.id<<16), "ADDR", p.addr(0).String()).Replace(key))
			good, err := p.kv.Get(p.ctx(), whole)
			must(p.t, err)
			before := p.inView()
			p.put(whole, value(p))
			return func() {
				if now := p.inView(); !maps.Equal(before, now) {
					p.t.Errorf("the view changed: %d objects, were %d", len(now), len(before))
				}
				if len(good.Kvs) > 0 {
					p.put(whole, good.Kvs[0].Value)
				} else {
					p.delete(whole)
				}
			}
		}, remotecluster.Ready, append([]string{"1 of its " + string(r) + " refused, such as cilium/cache/"}, says...)}
	}
	text := func(s string) func(*patient) []byte {
		return func(p *patient) []byte { return []byte(strings.ReplaceAll(s, "NAME", p.name)) }
	}
	return []illness{
		bad("a node that is none", wire.Nodes, "node0", text("{"), "/node0: malformed", "unexpected end of JSON input"),
		bad("a node of another cluster", wire.Nodes, "node0", text(`{"Name":"node0","Cluster":"beside","ClusterID":1}`),
			"/node0: cluster: ", "got beside, expected a-node-of-another-cluster"),
		bad("a node with the ID of another", wire.Nodes, "node0", text(`{"Name":"node0","Cluster":"NAME","ClusterID":1}`),
			"/node0: cluster-id: ", "got 1, expected"),
		bad("a node under the key of another", wire.Nodes, "node0", func(p *patient) []byte {
			n := wire.Node{Name: "node1", Cluster: p.name, ClusterID: p.id}
			return n.Encode()
		}, "/node0: key: ", "name does not match key: got node1, expected node0"),
		bad("a service that is none", wire.Services, "ns/svc0", text("[]"), "/ns/svc0: malformed", "cannot unmarshal array"),
		bad("a service with a bad address", wire.Services, "ns/svc0", func(p *patient) []byte {
			return fmt.Appendf(nil, `{"cluster":%q,"clusterID":%d,"namespace":"ns","name":"svc0","backends":{"nonsense":{}}}`, p.name, p.id)
		}, "/ns/svc0: address", "nonsense"),
		bad("a slice that is none", wire.EndpointSlices, "ns/slice", text("no zstd"), "/ns/slice: malformed", "magic number mismatch"),
		bad("a slice that unpacks to 17 MiB", wire.EndpointSlices, "ns/slice", func(p *patient) []byte {
			w, err := zstd.NewWriter(nil)
			must(p.t, err)
			defer w.Close()
			return w.EncodeAll(make([]byte, 17<<20), nil)
		}, "/ns/slice: too-large: it unpacks to more than 2097152 bytes"),
		bad("labels that are none", wire.Identities, "ID", text(""), "/id/", "missing: the labels are unset"),
		bad("labels of another cluster", wire.Identities, "ID", text("k8s:io.cilium.k8s.policy.cluster=beside;"),
			"/id/", "labels: unexpected cluster label: got k8s:io.cilium.k8s.policy.cluster=beside, expected"),
		bad("an identity out of range", wire.Identities, "65600", text("k8s:app=x;k8s:io.cilium.k8s.policy.cluster=NAME;"),
			"/id/65600: range: identity 65600 is outside cluster an-identity-out-of-range's range"),
		bad("an address that is none", wire.IPs, "ADDR", text(`{"IP":"300.1.2.3"}`), ": address", "300.1.2.3"),
		bad("an address under another key", wire.IPs, "ADDR", text(`{"IP":"10.1.1.1"}`), ": key: ", "IP address does not match key"),
		bad("an address with the identity of another", wire.IPs, "ADDR", func(p *patient) []byte {
			pair := wire.IPIdentityPair{IP: net.IP(p.addr(0).AsSlice()), Identity: 1<<16 + 7}
			return pair.Encode()
		}, ": range: identity 65543 is neither reserved nor in cluster"),
		bad("one and a half megabytes", wire.Nodes, "node0", text(strings.Repeat("x", 1_500_000)), "/node0: malformed", "invalid character 'x'"),
	}
}
