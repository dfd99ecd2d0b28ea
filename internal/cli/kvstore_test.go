package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

// kvServer is an etcd with a few keys of each kind.
func kvServer(t *testing.T) *etcdtest.Server {
	t.Helper()
	s := etcdtest.Start(t)
	slice := wire.EndpointSlice{
		Cluster: "c2", ClusterID: 300, Namespace: "default", Name: "web-1", AddressType: wire.AddressTypeIPv4,
		Endpoints: []wire.Endpoint{{Addresses: []string{"10.2.1.10"}}},
	}
	s.Put(t,
		wire.HeartbeatKey, string(wire.EncodeTimestamp(clitest.Began)),
		"cilium/cluster-config/c2", `{"id":2,"capabilities":{}}`,
		"cilium/state/nodes/v1/c2/n1", `{"Name":"n1"}`,
		"cilium/state/nodes/v1/c2/n2", "two\nlines",
		"cilium/state/nodes/v1/c2/n3", "\x00\xff\xfe",
		slice.Key(), string(slice.Encode()),
		"cilium/state/endpointslices/v1/c2/default/bad", "\x28\xb5\x2f\xfd broken",
	)
	return s
}

// kv runs a command line of kvstore on an endpoint.
func kv(endpoint string, args ...string) clitest.Result {
	return clitest.With(nil, "", "").Run(append([]string{"kvstore", "--kvstore-opt", "etcd.address=" + endpoint}, args...)...)
}

func TestKVStoreReads(t *testing.T) {
	t.Parallel()
	s := kvServer(t)
	const sliceKey = "cilium/state/endpointslices/v1/c2/default/web-1"
	for args, want := range map[string]clitest.Result{
		"get cilium/cluster-config/c2":                      {Code: 0, Out: `{"id":2,"capabilities":{}}` + "\n", Err: ""},
		"get cilium/state/nodes/v1/c2/n2":                   {Code: 0, Out: `"two\nlines"` + "\n", Err: ""},
		"get cilium/state/nodes/v1/c2/n3":                   {Code: 0, Out: "base64:AP/+\n", Err: ""},
		"get " + sliceKey:                                   {Code: 0, Out: `"addresses":["10.2.1.10"]`, Err: ""},
		"get " + sliceKey + " -o json":                      {Code: 0, Out: `"decoded": {`, Err: ""},
		"get cilium/state/endpointslices/v1/c2/default/bad": {Code: 0, Out: "base64:KLUv/", Err: ""},
		"get cilium/nope":                                   {Code: 1, Out: "", Err: `the local kvstore has no key "cilium/nope"`},
		"get cilium/state":                                  {Code: 1, Out: "", Err: "'mesh-agent kvstore list cilium/state/'"},
		"get":                                               {Code: 2, Out: "", Err: "want one KEY"},
		"list cilium/cluster-config/":                       {Code: 0, Out: "cilium/cluster-config/c2\t{\"id\":2,\"capabilities\":{}}\n", Err: ""},
		"list cilium/cluster-config/c2":                     {Code: 0, Out: "cilium/cluster-config/c2\t{", Err: ""},
		"list cilium/cluster-config --keys-only":            {Code: 0, Out: "cilium/cluster-config/c2\n", Err: `There is no key "cilium/cluster-config"; taken as the prefix "cilium/cluster-config/".`},
		"list cilium/nope/":                                 {Code: 0, Out: "", Err: `No keys below "cilium/nope/".`},
		"list cilium/nope":                                  {Code: 0, Out: "", Err: `neither a key "cilium/nope" nor one below it`},
		"list cilium/state/nodes/ --limit 2 --keys-only":    {Code: 0, Out: "n1\ncilium/state/nodes/v1/c2/n2\n", Err: "There are more: the list ended after 2 keys"},
		"list cilium/state/nodes/ --limit 3 --keys-only":    {Code: 0, Out: "n3\n", Err: ""},
		"list cilium/ --limit -1":                           {Code: 2, Out: "", Err: "--limit"},
		"list cilium/state/nodes/v1/c2/n3 -o json":          {Code: 0, Out: `"base64":"AP/+"`, Err: ""},
		"list cilium/state/nodes/v1/c2/n1 -o json":          {Code: 0, Out: `"value":"{\"Name\":\"n1\"}"`, Err: ""},
		"list":                     {Code: 2, Out: "", Err: "want one PREFIX"},
		"status":                   {Code: 0, Out: "the local kvstore: well", Err: ""},
		"status -o json":           {Code: 0, Out: `"problems": []`, Err: ""},
		"status x":                 {Code: 2, Out: "", Err: "unexpected argument"},
		"sattus":                   {Code: 2, Out: "", Err: "did you mean status?"},
		"get x --timeout 0s":       {Code: 2, Out: "", Err: "--timeout"},
		"get x --cluster Bad_Name": {Code: 2, Out: "", Err: `--cluster: "Bad_Name" must consist`},
		"get x --cluster c2 --clustermesh-config /nonexistent":         {Code: 2, Out: "", Err: "--clustermesh-config says where it is"},
		"get x --kvstore-opt etcd.nope=1":                              {Code: 2, Out: "", Err: "--kvstore-opt: kvstore option \"etcd.nope\": unknown"},
		"get x --kvstore-opt etcd.config=/nonexistent/c2":              {Code: 2, Out: "", Err: "/nonexistent/c2"},
		"get x --kvstore-opt etcd.address=http://127.0.0.1:1":          {Code: 2, Out: "", Err: "nothing listens there"},
		"status --kvstore-opt etcd.address=http://127.0.0.1:1 -o json": {Code: 2, Out: `"connected": false`, Err: ""},
		"watch x --kvstore-opt etcd.address=http://127.0.0.1:1":        {Code: 2, Out: "", Err: "nothing listens there"},
		"list cilium --kvstore-opt etcd.address=http://127.0.0.1:1":    {Code: 2, Out: "", Err: "nothing listens there"},
		"status --kvstore-opt etcd.address=http://127.0.0.1:1":         {Code: 2, Out: "1 problem", Err: ""},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := kv(s.Endpoint(), strings.Fields(args)...)
			if got.Code != want.Code || !clitest.Has(got.Out, want.Out) || !clitest.Has(got.Err, want.Err) {
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got.Code, want.Code, got.Out, got.Err)
			}
		})
	}
}

func TestWhichKVStore(t *testing.T) {
	t.Parallel()
	local, remote := etcdtest.Start(t), etcdtest.Start(t)
	local.Put(t, "who", "local")
	remote.Put(t, "who", "remote")
	dir := clitest.MeshDirectory(t, map[string]string{"c2": "endpoints: ['http://127.0.0.1:1', '" + remote.Endpoint() + "']\n", "c3": "endpoints: [x]\n"})
	opt := "etcd.address=" + local.Endpoint()
	file := samples.SettingsFile(t, fmt.Sprintf("clustermesh-config: %s\nkvstore-opt: {etcd.address: %q}\n", dir, local.Endpoint()))
	clientFile := local.ConfigFile(t)
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		want clitest.Result
	}{
		"none":                    {nil, nil, clitest.Result{Code: 2, Out: "", Err: "Give --cluster NAME"}},
		"the local one":           {nil, []string{"--kvstore-opt", opt}, clitest.Result{Code: 0, Out: "local\n", Err: ""}},
		"by its client file":      {nil, []string{"--kvstore-opt", "etcd.config=" + clientFile}, clitest.Result{Code: 0, Out: "local\n", Err: ""}},
		"by the environment":      {map[string]string{"MESH_AGENT_KVSTORE_OPT": opt}, nil, clitest.Result{Code: 0, Out: "local\n", Err: ""}},
		"by the settings":         {nil, []string{"--config", file}, clitest.Result{Code: 0, Out: "local\n", Err: ""}},
		"a remote one":            {nil, []string{"--cluster", "c2", "--clustermesh-config", dir}, clitest.Result{Code: 0, Out: "remote\n", Err: ""}},
		"a remote one, settings":  {nil, []string{"--cluster", "c2", "--config", file}, clitest.Result{Code: 0, Out: "remote\n", Err: ""}},
		"a remote one that is no": {nil, []string{"--cluster", "c9", "--config", file}, clitest.Result{Code: 1, Out: "", Err: `no client file of the cluster "c9" in ` + dir + `; there are: c2, c3`}},
		"a broken client file":    {nil, []string{"--cluster", "c3", "--config", file}, clitest.Result{Code: 2, Out: "", Err: "'mesh-agent config check' says more"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.With(test.env, "", "").Run(append([]string{"kvstore", "get", "who"}, test.args...)...)
			if got.Code != test.want.Code || !clitest.Has(got.Out, test.want.Out) || !clitest.Has(got.Err, test.want.Err) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
	got := clitest.With(nil, "", "").Run("kvstore", "status", "--cluster", "c2", "--clustermesh-config", dir, "-o", "json")
	var st kvstore.KvStatus
	if err := json.Unmarshal([]byte(got.Out), &st); err != nil {
		t.Fatal(err)
	}
	if got.Code != exit.Unwell || len(st.Endpoints) != 2 || st.Endpoints[0].Connected || !st.Endpoints[1].Connected ||
		st.Endpoints[1].EtcdClusterID != fmt.Sprintf("%x", remote.ClusterID()) || st.Endpoints[1].Version == "" || st.Endpoints[1].Revision == 0 ||
		len(st.Problems) != 2 || !strings.Contains(st.Problems[1], "there is no heartbeat") || st.ConfigFile != filepath.Join(dir, "c2") {
		t.Errorf("exit %d: %s", got.Code, got.Out)
	}
}

// TestAListInPages: the pages have all keys, in order.
func TestAListInPages(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	var want []string
	for i := range 60 {
		key := fmt.Sprintf("cilium/x/%03d", i)
		s.Put(t, key, fmt.Sprint(i))
		want = append(want, fmt.Sprintf("%s\t%d", key, i))
	}
	got := kv(s.Endpoint(), "list", "cilium/x/", "--kvstore-opt", "etcd.limit=7")
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(got.Out), "\n")); diff != "" || got.Code != exit.OK || got.Err != "" {
		t.Errorf("%d %s %s", got.Code, got.Err, diff)
	}
}

func TestAReaderWithFewRights(t *testing.T) {
	t.Parallel()
	s := kvServer(t)
	s.EnableAuth(t, etcdserver.User{Name: "remote", Password: "secret", Role: etcdserver.RemoteReader("c2")})
	file := s.ConfigFile(t, "username: remote", "password: secret")
	read := func(args ...string) clitest.Result {
		return clitest.With(nil, "", "").Run(append([]string{"kvstore", "--kvstore-opt", "etcd.config=" + file}, args...)...)
	}
	if got := read("list", "cilium/state", "--limit", "1", "--keys-only"); got.Code != exit.OK || !strings.HasPrefix(got.Out, "cilium/state/") || !strings.Contains(got.Err, "prefix") {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"get", "cilium/cluster-config/c9"}, {"list", "cilium/"}, {"list", "cilium"}, {"watch", "cilium/"}, {"watch", "cilium/cluster-config/c9"}} {
		if got := read(args...); got.Code != exit.Usage || got.Out != "" || !strings.Contains(got.Err, "permission denied") || !strings.Contains(got.Err, "role") || strings.Contains(got.Err, "secret") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := read("status"); got.Code != exit.OK || !strings.Contains(got.Out, "well") {
		t.Errorf("%+v", got)
	}
}

func TestAnOldHeartbeat(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t, wire.HeartbeatKey, string(wire.EncodeTimestamp(clitest.Began.Add(-time.Hour))))
	if got := kv(s.Endpoint(), "status"); got.Code != exit.Unwell || !strings.Contains(got.Out, "the heartbeat is 1h old") {
		t.Errorf("%+v", got)
	}
	s.Put(t, wire.HeartbeatKey, "no time")
	if got := kv(s.Endpoint(), "status"); got.Code != exit.OK || !strings.Contains(got.Out, "no time") {
		t.Errorf("%+v", got)
	}
}

func TestAWatchSurvivesItsServer(t *testing.T) {
	t.Parallel()
	s := etcdtest.StartProcess(t)
	s.Put(t, "cilium/x/a", "1", "cilium/x/b", "1")
	w := startWatch(t, "cilium/x", "--kvstore-opt", "etcd.address="+s.Endpoint(), "--timeout", "3s")
	w.says(`There is no key "cilium/x"; taken as the prefix "cilium/x/"`)
	w.says("Watching")
	clitest.Want(t, w.lines(2), "have\tcilium/x/a\t1", "have\tcilium/x/b\t1")
	s.Put(t, "cilium/x/a", "2")
	clitest.Want(t, w.lines(1), "put\tcilium/x/a\t2")
	// While the etcd is unreachable the watch reports that; then it continues.
	s.Kill(t)
	w.says("Interrupted, trying again")
	s.Restart(t)
	w.says("Going on at")
	if _, err := s.Client(t).Delete(t.Context(), "cilium/x/b"); err != nil {
		t.Fatal(err)
	}
	s.Put(t, "cilium/x/a", "3")
	got := w.lines(2)
	slices.Sort(got) // a list that follows a resumption may have another order
	clitest.Want(t, got, "delete\tcilium/x/b", "put\tcilium/x/a\t3")
	w.interrupt()
}

// TestAWatchFromNow: keys that were there before are not shown, but later changes and deletions of them are.
func TestAWatchFromNow(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t, "k", "old")
	w := startWatch(t, "k", "--from-now", "-o", "json", "--kvstore-opt", "etcd.address="+s.Endpoint())
	w.says(`Watching "k" of the local kvstore`)
	// The list may be read after this write, which is then not an event: write until there is one.
	done := make(chan []string, 1)
	go func() { done <- w.lines(1) }()
	var first []string
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for i := 0; first == nil; i++ {
		s.Put(t, "k", fmt.Sprint(i))
		select {
		case first = <-done:
		case <-poll.C:
		}
	}
	var event kvstore.ShownKey
	if err := json.Unmarshal([]byte(first[0]), &event); err != nil || event.Event != kvstore.EventPut || event.Key != "k" || event.Value == nil || *event.Value == "old" {
		t.Errorf("%v %s", err, first[0])
	}
	s.Delete(t, "k")
	for {
		line := w.lines(1)[0]
		if strings.Contains(line, `"event":"delete"`) {
			clitest.Want(t, []string{line}, `{"event":"delete","key":"k"}`)
			break
		}
	}
	w.interrupt()
}
