package cli_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// identityCommand runs a command line of identity in the cluster east, ID 2.
func identityCommand(endpoint string, args ...string) clitest.Result {
	return clitest.With(nil, "", "").Run(append([]string{
		"identity", "--kvstore-opt", "etcd.address=" + endpoint, "--cluster-name", "east", "--cluster-id", "2", "--node-ip", "10.0.0.1",
	}, args...)...)
}

const (
	webMapping   = string(wire.IdentityAllocation) + "/id/131072"
	webLabels    = "k8s:app=web;k8s:io.cilium.k8s.policy.cluster=east;"
	webReference = string(wire.IdentityAllocation) + "/value/" + webLabels + "/10.0.0.9"
)

func TestIdentityCommands(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t, webMapping, webLabels, webReference, "131072", string(wire.IdentityAllocation)+"/id/131073", "k8s:app=idle;")
	for args, want := range map[string]clitest.Result{
		"list": {Code: 0, Out: "131072      1  10.0.0.9  k8s:app=web k8s:io.cilium.k8s.policy.cluster=east\n", Err: ""},
		"list -o json": {Code: 0, Out: `"nodes": [
        "10.0.0.9"
      ]`, Err: ""},
		"list -o xml":            {Code: 2, Out: "", Err: "xml"},
		"check":                  {Code: 0, Out: "cluster east: 0 errors, 0 warnings, 1 note\n", Err: ""},
		"check -v":               {Code: 0, Out: "no node uses k8s:app=idle;", Err: ""},
		"check -o json":          {Code: 0, Out: `"kind": "mapping-without-reference"`, Err: ""},
		"check --cluster-id 3":   {Code: 1, Out: "out-of-range", Err: ""},
		"check --cluster-id 300": {Code: 2, Out: "", Err: "--cluster-id"},
		"gc --dry-run":           {Code: 0, Out: "1 identity of 2 would be deleted", Err: ""},
		"gc --dry-run -o json":   {Code: 0, Out: `"id": 131073`, Err: ""},
		"gc --between -1s":       {Code: 2, Out: "", Err: "--between"},
		"gc --cluster c1":        {Code: 2, Out: "", Err: "only read"},
		"heal":                   {Code: 0, Out: "No labels are in use under several numbers.", Err: ""},
		"heal --cluster c1":      {Code: 2, Out: "", Err: "only read"},
		"allocate":               {Code: 2, Out: "", Err: "one LABEL"},
		"allocate =":             {Code: 2, Out: "", Err: "is no label"},
		"allocate k8s:app=web --once --node-ip 10.0.0.9":         {Code: 0, Out: "131072\n", Err: ""},
		"allocate k8s:app=web --once -o json --node-ip 10.0.0.9": {Code: 0, Out: `"new": false`, Err: ""},
		"allocate reserved:host --once":                          {Code: 0, Out: "1\n", Err: ""},
		"allocate k8s:app=a;b --once":                            {Code: 1, Out: "", Err: "no part may have a semicolon"},
		"allocate k8s:app=x --once --node-ip nobody":             {Code: 2, Out: "", Err: "--node-ip"},
		"allocate k8s:app=x --cluster c1":                        {Code: 2, Out: "", Err: "only read"},
		"release k8s:app=nothing":                                {Code: 1, Out: "", Err: "holds no reference of k8s:app=nothing;"},
		"release k8s:app=web --node-ip 10.0.0.7":                 {Code: 1, Out: "", Err: "10.0.0.7 holds no reference"},
		"compare cilium/state/identities/v1/":                    {Code: 2, Out: "", Err: "give another prefix"},
		"compare":                                                {Code: 2, Out: "", Err: "compare with what? Give --kubernetes"},
		"compare --kubeconfig nowhere":                           {Code: 2, Out: "", Err: "nowhere"},
		"allocate k8s:app=x --identity-allocation-mode etcd":     {Code: 2, Out: "", Err: "is none of kvstore"},
		"allocate k8s:app=x --identity-allocation-mode crd":      {Code: 2, Out: "", Err: "say how to reach it"},
		"gc --identity-allocation-mode crd":                      {Code: 2, Out: "", Err: "'mesh-agent operate' in that mode collects on both sides"},
		"compare cilium/elsewhere":                               {Code: 1, Out: "only primary: [131072] k8s:app=web;", Err: ""},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			clitest.CheckResult(t, args, identityCommand(s.Endpoint(), strings.Fields(args)...), want)
		})
	}
}

// TestIdentitiesComeAndGo follows one from its allocation to its deletion.
func TestIdentitiesComeAndGo(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	run := func(args string, want clitest.Result) string {
		t.Helper()
		got := identityCommand(s.Endpoint(), strings.Fields(args)...)
		clitest.CheckResult(t, args, got, want)
		return got.Out
	}
	made := strings.TrimSpace(run("allocate k8s:app=web --once --kvstore-lease-ttl 77s", clitest.Result{Code: 0, Out: "", Err: ""}))
	resp, err := s.Local().Get(t.Context(), strings.Replace(webReference, "10.0.0.9", "10.0.0.1", 1))
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("no reference: %v, %v", resp, err)
	}
	lease, err := s.Local().TimeToLive(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease))
	if err != nil || lease.GrantedTTL != 77 {
		t.Errorf("the lease lasts for %d s, %v", lease.GrantedTTL, err)
	}
	run("allocate k8s:app=web --once --node-ip 10.0.0.2", clitest.Result{Code: 0, Out: made + "\n", Err: ""})
	run("compare cilium/elsewhere --copy", clitest.Result{Code: 0, Out: "1 identity was copied", Err: ""})
	run("gc --between 1ms --kvstore-periodic-sync 1ms", clitest.Result{Code: 0, Out: "0 identities deleted, 1 left", Err: ""})
	run("release k8s:app=web", clitest.Result{Code: 0, Out: "", Err: "10.0.0.1 holds no reference of identity " + made})
	run("release k8s:app=web", clitest.Result{Code: 1, Out: "", Err: "the identity does not exist"})
	run("gc --between 1ms --kvstore-periodic-sync 1ms", clitest.Result{Code: 0, Out: "0 identities deleted, 1 left", Err: ""})
	run("release k8s:app=web --node-ip 10.0.0.2", clitest.Result{Code: 0, Out: "", Err: made})
	run("gc --between 1ms --kvstore-periodic-sync 1ms", clitest.Result{Code: 0, Out: "1 identity deleted, 0 left", Err: "looking again in 1ms"})
	run("list", clitest.Result{Code: 0, Out: "", Err: "No identities in the local kvstore."})
}

// TestIdentitiesAreDeleted: at once, but none that is in use in any way.
func TestIdentitiesAreDeleted(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	mapping := func(id string) string { return string(wire.IdentityAllocation) + "/id/" + id }
	pair := wire.NewHostPair(netip.MustParseAddr("10.1.0.1"))
	pair.Identity = 131075
	s.Put(t, webMapping, webLabels, webReference, "131072", mapping("131073"), "k8s:app=idle;", mapping("131074"), "k8s:app=old;",
		mapping("131075"), "k8s:app=published;", mapping("65540"), "k8s:app=others;", pair.Key(), string(pair.Encode()))
	for _, step := range []struct {
		args string
		want clitest.Result
	}{
		{"delete", clitest.Result{Code: 2, Out: "", Err: "one ID"}},
		{"delete web", clitest.Result{Code: 2, Out: "", Err: `"web" is no number`}},
		{"delete 0", clitest.Result{Code: 2, Out: "", Err: `"0" is no number`}},
		{"delete 131073 --cluster c1", clitest.Result{Code: 2, Out: "", Err: "only read"}},
		{"delete 131072", clitest.Result{Code: 1, Out: "", Err: "identity 131072 is not deleted: a node uses the ID"}},
		{"delete 131075", clitest.Result{Code: 1, Out: "", Err: "identity 131075 is not deleted: 1 address is published"}},
		{"delete 65540", clitest.Result{Code: 1, Out: "", Err: "is not between 131072 and 196607"}},
		{"delete 131073 131079 131074", clitest.Result{Code: 1, Out: "", Err: "identity 131079: the identity does not exist"}},
		{"delete 131073", clitest.Result{Code: 1, Out: "", Err: "does not exist"}},
	} {
		clitest.CheckResult(t, step.args, identityCommand(s.Endpoint(), strings.Fields(step.args)...), step.want)
	}
	resp, err := s.Local().Get(t.Context(), string(wire.IdentityAllocation)+"/id/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || resp.Count != 3 {
		t.Errorf("%v mappings are left, %v", resp, err)
	}
	s.Put(t, mapping("131073"), "bad")
	clitest.CheckResult(t, "delete", identityCommand(s.Endpoint(), "delete", "131073"), clitest.Result{Code: 0, Out: "", Err: "Identity 131073 is deleted."})
}

// TestGarbageIsNotCollectedWhereNobodyHoldsReferences: a cluster whose identities are Kubernetes objects publishes them
// without references; a collection would delete all of them.
func TestGarbageIsNotCollectedWhereNobodyHoldsReferences(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	pair := wire.NewHostPair(netip.MustParseAddr("10.1.0.1"))
	pair.Identity = 131072
	s.Put(t, webMapping, webLabels, pair.Key(), string(pair.Encode()))
	for _, args := range []string{"gc --between 1ms --kvstore-periodic-sync 1ms", "gc --dry-run"} {
		want := clitest.Result{Code: 1, Out: "", Err: "nothing was deleted: identity 131072 has no reference, though addresses (1) are published with it"}
		clitest.CheckResult(t, args, identityCommand(s.Endpoint(), strings.Fields(args)...), want)
	}
	clitest.CheckResult(t, "check", identityCommand(s.Endpoint(), "check", "-v"), clitest.Result{Code: 0, Out: "never collect garbage here", Err: ""})
	clitest.CheckResult(t, "list", identityCommand(s.Endpoint(), "list"), clitest.Result{Code: 0, Out: "131072", Err: ""})
}

// TestIdentitiesOfRemoteClustersAreRead: in the range of the cluster's configuration, and from a mirror's copy.
func TestIdentitiesOfRemoteClustersAreRead(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t,
		"cilium/cluster-config/direct", `{"id":2,"capabilities":{"maxConnectedClusters":511}}`,
		"cilium/cluster-config/copied", `{"id":3,"capabilities":{"cached":true}}`,
		"cilium/cluster-config/broken", `{"id":300,"capabilities":{}}`,
		string(wire.IdentityAllocation)+"/id/65536", "k8s:app=web;",
		"cilium/cache/identities/v1/copied/id/196608", "k8s:app=copy;",
	)
	dir := t.TempDir()
	for _, name := range []string{"direct", "copied", "broken", "silent"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("endpoints: ["+s.Endpoint()+"]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]clitest.Result{
		"list --cluster direct":  {Code: 0, Out: "65536", Err: ""},
		"list --cluster copied":  {Code: 0, Out: "196608", Err: ""},
		"check --cluster direct": {Code: 0, Out: "Range       65536 to 98303", Err: ""},
		"check --cluster copied": {Code: 2, Out: "", Err: "the copy that a mirror keeps"},
		"list --cluster broken":  {Code: 1, Out: "", Err: "ClusterID > 255"},
		"list --cluster silent":  {Code: 1, Out: "", Err: "has no configuration"},
		"list --cluster nobody":  {Code: 1, Out: "", Err: "no client file"},
	} {
		got := clitest.With(nil, "", "").Run(append([]string{"identity", "--clustermesh-config", dir}, strings.Fields(args)...)...)
		clitest.CheckResult(t, args, got, want)
	}
}

// TestAnIdentityIsHeldUntilAnInterrupt runs the program, which then releases the reference.
func TestAnIdentityIsHeldUntilAnInterrupt(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	hold := func(label string) (id string, interrupt func()) {
		w := startCommand(t, "identity", "allocate", label, "--node-ip", "10.0.0.9",
			"--kvstore-opt", "etcd.address="+s.Endpoint(), "--cluster-name", "east", "--cluster-id", "2")
		id = w.lines(1)[0]
		w.says("Holding the reference of 10.0.0.9")
		return id, w.interrupt
	}
	_, interrupt := hold("reserved:host") // for this one it writes nothing
	interrupt()
	id, interrupt := hold("k8s:app=web")
	held := func() int64 {
		resp, err := s.Local().Get(t.Context(), webReference)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Count
	}
	if n := held(); n != 1 {
		t.Errorf("%d references of %s", n, id)
	}
	interrupt()
	if held() != 0 {
		t.Error("the reference was not given back")
	}
}

// TestLabelsInUseUnderTwoNumbersAreHealed: nothing is written until the repair is requested.
func TestLabelsInUseUnderTwoNumbersAreHealed(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t, webMapping, webLabels, webReference, "131072", strings.Replace(webReference, ".9", ".8", 1), "131072",
		strings.Replace(webMapping, "131072", "131073", 1), webLabels, strings.Replace(webReference, ".9", ".7", 1), "131073")
	run := func(args string, want clitest.Result) {
		t.Helper()
		clitest.CheckResult(t, args, identityCommand(s.Endpoint(), strings.Fields(args)...), want)
	}
	run("check", clitest.Result{Code: 1, Out: "MESH-4211", Err: ""})
	run("heal", clitest.Result{Code: 0, Out: "would be kept: 131072 on 10.0.0.8, 10.0.0.9\n  would be withdrawn: 131073 on 10.0.0.7\n", Err: ""})
	run("check", clitest.Result{Code: 1, Out: "MESH-4211", Err: ""})
	run("heal --apply -o json", clitest.Result{Code: 0, Out: `"applied": true`, Err: ""})
	run("heal --apply", clitest.Result{Code: 0, Out: "No labels are in use under several numbers.", Err: ""})
	run("list", clitest.Result{Code: 0, Out: "10.0.0.8", Err: ""})
	if resp, err := s.Local().Get(t.Context(), strings.Replace(webReference, ".9", ".7", 1)); err != nil || len(resp.Kvs) != 0 {
		t.Errorf("the reference that is withdrawn: %v, %v", resp, err)
	}
}
