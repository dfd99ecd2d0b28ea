package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// identityCommand runs a command line of identity in the cluster east, ID 2.
func identityCommand(endpoint string, args ...string) result {
	return with(nil, "", "").run(append([]string{
		"identity", "--kvstore-opt", "etcd.address=" + endpoint, "--cluster-name", "east", "--cluster-id", "2", "--node-ip", "10.0.0.1",
	}, args...)...)
}

const (
	webMapping   = string(wire.IdentityAllocation) + "/id/131072"
	webLabels    = "k8s:app=web;k8s:io.cilium.k8s.policy.cluster=east;"
	webReference = string(wire.IdentityAllocation) + "/value/" + webLabels + "/10.0.0.9"
)

// checkResult compares a result with one whose texts are parts.
func checkResult(t *testing.T, args string, got, want result) {
	t.Helper()
	if got.code != want.code || !strings.Contains(got.out, want.out) || !strings.Contains(got.err, want.err) {
		t.Errorf("identity %s: exit %d\n%s%s\nwant exit %d, %q on stdout and %q on stderr",
			args, got.code, got.out, got.err, want.code, want.out, want.err)
	}
}

func TestIdentityCommands(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t, webMapping, webLabels, webReference, "131072", string(wire.IdentityAllocation)+"/id/131073", "k8s:app=idle;")
	for args, want := range map[string]result{
		"list": {0, "131072      1  10.0.0.9  k8s:app=web k8s:io.cilium.k8s.policy.cluster=east\n", ""},
		"list -o json": {0, `"nodes": [
        "10.0.0.9"
      ]`, ""},
		"list -o xml":            {2, "", "xml"},
		"check":                  {0, "cluster east: 0 errors, 0 warnings, 1 note\n", ""},
		"check -v":               {0, "no node uses k8s:app=idle;", ""},
		"check -o json":          {0, `"kind": "mapping-without-reference"`, ""},
		"check --cluster-id 3":   {1, "out-of-range", ""},
		"check --cluster-id 300": {2, "", "--cluster-id"},
		"gc --dry-run":           {0, "1 identity of 2 would be deleted", ""},
		"gc --dry-run -o json":   {0, `"id": 131073`, ""},
		"gc --between -1s":       {2, "", "--between"},
		"gc --cluster c1":        {2, "", "only read"},
		"heal":                   {0, "No labels are in use under several numbers.", ""},
		"heal --cluster c1":      {2, "", "only read"},
		"allocate":               {2, "", "one LABEL"},
		"allocate =":             {2, "", "is no label"},
		"allocate k8s:app=web --once --node-ip 10.0.0.9":         {0, "131072\n", ""},
		"allocate k8s:app=web --once -o json --node-ip 10.0.0.9": {0, `"new": false`, ""},
		"allocate reserved:host --once":                          {0, "1\n", ""},
		"allocate k8s:app=a;b --once":                            {1, "", "no part may have a semicolon"},
		"allocate k8s:app=x --once --node-ip nobody":             {2, "", "--node-ip"},
		"allocate k8s:app=x --cluster c1":                        {2, "", "only read"},
		"release k8s:app=nothing":                                {1, "", "holds no reference of k8s:app=nothing;"},
		"release k8s:app=web --node-ip 10.0.0.7":                 {1, "", "10.0.0.7 holds no reference"},
		"compare cilium/state/identities/v1/":                    {2, "", "give another prefix"},
		"compare":                                                {2, "", "compare with what? Give --kubernetes"},
		"compare --kubeconfig nowhere":                           {2, "", "nowhere"},
		"allocate k8s:app=x --identity-allocation-mode etcd":     {2, "", "is none of kvstore"},
		"allocate k8s:app=x --identity-allocation-mode crd":      {2, "", "say how to reach it"},
		"gc --identity-allocation-mode crd":                      {2, "", "'mesh-agent operate' in that mode collects on both sides"},
		"compare cilium/elsewhere":                               {1, "only primary: [131072] k8s:app=web;", ""},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			checkResult(t, args, identityCommand(s.Endpoint(), strings.Fields(args)...), want)
		})
	}
}

// TestIdentitiesComeAndGo follows one from its allocation to its deletion.
func TestIdentitiesComeAndGo(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	run := func(args string, want result) string {
		t.Helper()
		got := identityCommand(s.Endpoint(), strings.Fields(args)...)
		checkResult(t, args, got, want)
		return got.out
	}
	made := strings.TrimSpace(run("allocate k8s:app=web --once --kvstore-lease-ttl 77s", result{0, "", ""}))
	resp, err := s.Local().Get(t.Context(), strings.Replace(webReference, "10.0.0.9", "10.0.0.1", 1))
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("no reference: %v, %v", resp, err)
	}
	lease, err := s.Local().TimeToLive(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease))
	if err != nil || lease.GrantedTTL != 77 {
		t.Errorf("the lease lasts for %d s, %v", lease.GrantedTTL, err)
	}
	run("allocate k8s:app=web --once --node-ip 10.0.0.2", result{0, made + "\n", ""})
	run("compare cilium/elsewhere --copy", result{0, "1 identity was copied", ""})
	run("gc --between 1ms --kvstore-periodic-sync 1ms", result{0, "0 identities deleted, 1 left", ""})
	run("release k8s:app=web", result{0, "", "10.0.0.1 holds no reference of identity " + made})
	run("release k8s:app=web", result{1, "", "the identity does not exist"})
	run("gc --between 1ms --kvstore-periodic-sync 1ms", result{0, "0 identities deleted, 1 left", ""})
	run("release k8s:app=web --node-ip 10.0.0.2", result{0, "", made})
	run("gc --between 1ms --kvstore-periodic-sync 1ms", result{0, "1 identity deleted, 0 left", "looking again in 1ms"})
	run("list", result{0, "", "No identities in the local kvstore."})
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
		want result
	}{
		{"delete", result{2, "", "one ID"}},
		{"delete web", result{2, "", `"web" is no number`}},
		{"delete 0", result{2, "", `"0" is no number`}},
		{"delete 131073 --cluster c1", result{2, "", "only read"}},
		{"delete 131072", result{1, "", "identity 131072 is not deleted: a node uses the ID"}},
		{"delete 131075", result{1, "", "identity 131075 is not deleted: 1 address is published"}},
		{"delete 65540", result{1, "", "is not between 131072 and 196607"}},
		{"delete 131073 131079 131074", result{1, "", "identity 131079: the identity does not exist"}},
		{"delete 131073", result{1, "", "does not exist"}},
	} {
		checkResult(t, step.args, identityCommand(s.Endpoint(), strings.Fields(step.args)...), step.want)
	}
	resp, err := s.Local().Get(t.Context(), string(wire.IdentityAllocation)+"/id/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || resp.Count != 3 {
		t.Errorf("%v mappings are left, %v", resp, err)
	}
	s.Put(t, mapping("131073"), "bad")
	checkResult(t, "delete", identityCommand(s.Endpoint(), "delete", "131073"), result{0, "", "Identity 131073 is deleted."})
}

// TestGarbageIsNotCollectedWhereNobodyHoldsReferences: a cluster whose identities
// are objects of Kubernetes publishes them without references; all would go.
func TestGarbageIsNotCollectedWhereNobodyHoldsReferences(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	pair := wire.NewHostPair(netip.MustParseAddr("10.1.0.1"))
	pair.Identity = 131072
	s.Put(t, webMapping, webLabels, pair.Key(), string(pair.Encode()))
	for _, args := range []string{"gc --between 1ms --kvstore-periodic-sync 1ms", "gc --dry-run"} {
		want := result{1, "", "nothing was deleted: identity 131072 has no reference, though addresses (1) are published with it"}
		checkResult(t, args, identityCommand(s.Endpoint(), strings.Fields(args)...), want)
	}
	checkResult(t, "check", identityCommand(s.Endpoint(), "check", "-v"), result{0, "never collect garbage here", ""})
	checkResult(t, "list", identityCommand(s.Endpoint(), "list"), result{0, "131072", ""})
}

// TestIdentitiesOfRemoteClustersAreRead: by the range that the cluster says it has,
// and where a mirror keeps them.
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
	for args, want := range map[string]result{
		"list --cluster direct":  {0, "65536", ""},
		"list --cluster copied":  {0, "196608", ""},
		"check --cluster direct": {0, "Range       65536 to 98303", ""},
		"check --cluster copied": {2, "", "the copy that a mirror keeps"},
		"list --cluster broken":  {1, "", "ClusterID > 255"},
		"list --cluster silent":  {1, "", "has no configuration"},
		"list --cluster nobody":  {1, "", "no client file"},
	} {
		got := with(nil, "", "").run(append([]string{"identity", "--clustermesh-config", dir}, strings.Fields(args)...)...)
		checkResult(t, args, got, want)
	}
}

// TestAnIdentityIsHeldUntilAnInterrupt runs the program, which gives the
// reference back.
func TestAnIdentityIsHeldUntilAnInterrupt(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	w := startCommand(t, "identity", "allocate", "k8s:app=web", "--node-ip", "10.0.0.9",
		"--kvstore-opt", "etcd.address="+s.Endpoint(), "--cluster-name", "east", "--cluster-id", "2")
	id := w.lines(1)[0]
	w.says("Holding the reference of 10.0.0.9")
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
	w.interrupt()
	if held() != 0 {
		t.Error("the reference was not given back")
	}
}

// TestLabelsInUseUnderTwoNumbersAreHealed: nothing is written before it is asked for.
func TestLabelsInUseUnderTwoNumbersAreHealed(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t, webMapping, webLabels, webReference, "131072", strings.Replace(webReference, ".9", ".8", 1), "131072",
		strings.Replace(webMapping, "131072", "131073", 1), webLabels, strings.Replace(webReference, ".9", ".7", 1), "131073")
	run := func(args string, want result) {
		t.Helper()
		checkResult(t, args, identityCommand(s.Endpoint(), strings.Fields(args)...), want)
	}
	run("check", result{1, "MESH-4211", ""})
	run("heal", result{0, "would be kept: 131072 on 10.0.0.8, 10.0.0.9\n  would be withdrawn: 131073 on 10.0.0.7\n", ""})
	run("check", result{1, "MESH-4211", ""})
	run("heal --apply -o json", result{0, `"applied": true`, ""})
	run("heal --apply", result{0, "No labels are in use under several numbers.", ""})
	run("list", result{0, "10.0.0.8", ""})
	if resp, err := s.Local().Get(t.Context(), strings.Replace(webReference, ".9", ".7", 1)); err != nil || len(resp.Kvs) != 0 {
		t.Errorf("the reference that is withdrawn: %v, %v", resp, err)
	}
}
