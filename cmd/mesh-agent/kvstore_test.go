package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// kvServer is an etcd with a little of everything.
func kvServer(t *testing.T) *etcdtest.Server {
	t.Helper()
	s := etcdtest.Start(t)
	slice := wire.EndpointSlice{
		Cluster: "c2", ClusterID: 300, Namespace: "default", Name: "web-1", AddressType: wire.AddressTypeIPv4,
		Endpoints: []wire.Endpoint{{Addresses: []string{"10.2.1.10"}}},
	}
	s.Put(t,
		wire.HeartbeatKey, string(wire.EncodeTimestamp(began)),
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
func kv(endpoint string, args ...string) result {
	return with(nil, "", "").run(append([]string{"kvstore", "--kvstore-opt", "etcd.address=" + endpoint}, args...)...)
}

func TestKVStoreReads(t *testing.T) {
	t.Parallel()
	s := kvServer(t)
	const sliceKey = "cilium/state/endpointslices/v1/c2/default/web-1"
	for args, want := range map[string]result{
		"get cilium/cluster-config/c2":                      {0, `{"id":2,"capabilities":{}}` + "\n", ""},
		"get cilium/state/nodes/v1/c2/n2":                   {0, `"two\nlines"` + "\n", ""},
		"get cilium/state/nodes/v1/c2/n3":                   {0, "base64:AP/+\n", ""},
		"get " + sliceKey:                                   {0, `"addresses":["10.2.1.10"]`, ""},
		"get " + sliceKey + " -o json":                      {0, `"decoded": {`, ""},
		"get cilium/state/endpointslices/v1/c2/default/bad": {0, "base64:KLUv/", ""},
		"get cilium/nope":                                   {1, "", `the local kvstore has no key "cilium/nope"`},
		"get cilium/state":                                  {1, "", "'mesh-agent kvstore list cilium/state/'"},
		"get":                                               {2, "", "want one KEY"},
		"list cilium/cluster-config/":                       {0, "cilium/cluster-config/c2\t{\"id\":2,\"capabilities\":{}}\n", ""},
		"list cilium/cluster-config/c2":                     {0, "cilium/cluster-config/c2\t{", ""},
		"list cilium/cluster-config --keys-only":            {0, "cilium/cluster-config/c2\n", `There is no key "cilium/cluster-config"; taken as the prefix "cilium/cluster-config/".`},
		"list cilium/nope/":                                 {0, "", `No keys below "cilium/nope/".`},
		"list cilium/nope":                                  {0, "", `neither a key "cilium/nope" nor one below it`},
		"list cilium/state/nodes/ --limit 2 --keys-only":    {0, "n1\ncilium/state/nodes/v1/c2/n2\n", "There are more: the list ended after 2 keys"},
		"list cilium/state/nodes/ --limit 3 --keys-only":    {0, "n3\n", ""},
		"list cilium/ --limit -1":                           {2, "", "--limit"},
		"list cilium/state/nodes/v1/c2/n3 -o json":          {0, `"base64":"AP/+"`, ""},
		"list cilium/state/nodes/v1/c2/n1 -o json":          {0, `"value":"{\"Name\":\"n1\"}"`, ""},
		"list":                     {2, "", "want one PREFIX"},
		"status":                   {0, "the local kvstore: well", ""},
		"status -o json":           {0, `"problems": []`, ""},
		"status x":                 {2, "", "unexpected argument"},
		"sattus":                   {2, "", "did you mean status?"},
		"get x --timeout 0s":       {2, "", "--timeout"},
		"get x --cluster Bad_Name": {2, "", `--cluster: "Bad_Name" must consist`},
		"get x --cluster c2 --clustermesh-config /nonexistent":         {2, "", "--clustermesh-config says where it is"},
		"get x --kvstore-opt etcd.nope=1":                              {2, "", "--kvstore-opt: kvstore option \"etcd.nope\": unknown"},
		"get x --kvstore-opt etcd.config=/nonexistent/c2":              {2, "", "/nonexistent/c2"},
		"get x --kvstore-opt etcd.address=http://127.0.0.1:1":          {2, "", "nothing listens there"},
		"status --kvstore-opt etcd.address=http://127.0.0.1:1 -o json": {2, `"connected": false`, ""},
		"watch x --kvstore-opt etcd.address=http://127.0.0.1:1":        {2, "", "nothing listens there"},
		"list cilium --kvstore-opt etcd.address=http://127.0.0.1:1":    {2, "", "nothing listens there"},
		"status --kvstore-opt etcd.address=http://127.0.0.1:1":         {2, "1 problem", ""},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := kv(s.Endpoint(), strings.Fields(args)...)
			if got.code != want.code || !contains(got.out, want.out) || !contains(got.err, want.err) {
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got.code, want.code, got.out, got.err)
			}
		})
	}
}

func TestWhichKVStore(t *testing.T) {
	t.Parallel()
	local, remote := etcdtest.Start(t), etcdtest.Start(t)
	local.Put(t, "who", "local")
	remote.Put(t, "who", "remote")
	dir := meshDirectory(t, map[string]string{"c2": "endpoints: ['http://127.0.0.1:1', '" + remote.Endpoint() + "']\n", "c3": "endpoints: [x]\n"})
	opt := "etcd.address=" + local.Endpoint()
	file := settingsFile(t, fmt.Sprintf("clustermesh-config: %s\nkvstore-opt: {etcd.address: %q}\n", dir, local.Endpoint()))
	clientFile := local.ConfigFile(t)
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		want result
	}{
		"none":                    {nil, nil, result{2, "", "Give --cluster NAME"}},
		"the local one":           {nil, []string{"--kvstore-opt", opt}, result{0, "local\n", ""}},
		"by its client file":      {nil, []string{"--kvstore-opt", "etcd.config=" + clientFile}, result{0, "local\n", ""}},
		"by the environment":      {map[string]string{"MESH_AGENT_KVSTORE_OPT": opt}, nil, result{0, "local\n", ""}},
		"by the settings":         {nil, []string{"--config", file}, result{0, "local\n", ""}},
		"a remote one":            {nil, []string{"--cluster", "c2", "--clustermesh-config", dir}, result{0, "remote\n", ""}},
		"a remote one, settings":  {nil, []string{"--cluster", "c2", "--config", file}, result{0, "remote\n", ""}},
		"a remote one that is no": {nil, []string{"--cluster", "c9", "--config", file}, result{1, "", `no client file of the cluster "c9" in ` + dir + `; there are: c2, c3`}},
		"a broken client file":    {nil, []string{"--cluster", "c3", "--config", file}, result{2, "", "'mesh-agent config check' says more"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := with(test.env, "", "").run(append([]string{"kvstore", "get", "who"}, test.args...)...)
			if got.code != test.want.code || !contains(got.out, test.want.out) || !contains(got.err, test.want.err) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
	got := with(nil, "", "").run("kvstore", "status", "--cluster", "c2", "--clustermesh-config", dir, "-o", "json")
	var st kvStatus
	if err := json.Unmarshal([]byte(got.out), &st); err != nil {
		t.Fatal(err)
	}
	if got.code != exitUnwell || len(st.Endpoints) != 2 || st.Endpoints[0].Connected || !st.Endpoints[1].Connected ||
		st.Endpoints[1].EtcdClusterID != fmt.Sprintf("%x", remote.ClusterID()) || st.Endpoints[1].Version == "" || st.Endpoints[1].Revision == 0 ||
		len(st.Problems) != 2 || !strings.Contains(st.Problems[1], "there is no heartbeat") || st.ConfigFile != filepath.Join(dir, "c2") {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
}

// TestAListInPages: everything comes, in order, in pages.
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
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(got.out), "\n")); diff != "" || got.code != exitOK || got.err != "" {
		t.Errorf("%d %s %s", got.code, got.err, diff)
	}
}

func TestAReaderWithFewRights(t *testing.T) {
	t.Parallel()
	s := kvServer(t)
	s.EnableAuth(t, etcdserver.User{Name: "remote", Password: "secret", Role: etcdserver.RemoteReader("c2")})
	file := s.ConfigFile(t, "username: remote", "password: secret")
	read := func(args ...string) result {
		return with(nil, "", "").run(append([]string{"kvstore", "--kvstore-opt", "etcd.config=" + file}, args...)...)
	}
	if got := read("list", "cilium/state", "--limit", "1", "--keys-only"); got.code != exitOK || !strings.HasPrefix(got.out, "cilium/state/") || !strings.Contains(got.err, "prefix") {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"get", "cilium/cluster-config/c9"}, {"list", "cilium/"}, {"list", "cilium"}, {"watch", "cilium/"}, {"watch", "cilium/cluster-config/c9"}} {
		if got := read(args...); got.code != exitUsage || got.out != "" || !strings.Contains(got.err, "permission denied") || !strings.Contains(got.err, "role") || strings.Contains(got.err, "secret") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := read("status"); got.code != exitOK || !strings.Contains(got.out, "well") {
		t.Errorf("%+v", got)
	}
}

func TestAnOldHeartbeat(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t, wire.HeartbeatKey, string(wire.EncodeTimestamp(began.Add(-time.Hour))))
	if got := kv(s.Endpoint(), "status"); got.code != exitUnwell || !strings.Contains(got.out, "the heartbeat is 1h old") {
		t.Errorf("%+v", got)
	}
	s.Put(t, wire.HeartbeatKey, "no time")
	if got := kv(s.Endpoint(), "status"); got.code != exitOK || !strings.Contains(got.out, "no time") {
		t.Errorf("%+v", got)
	}
}

// watcher is a running command, mostly a watch, in a process of its own.
type watcher struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *bufio.Scanner
}

func startWatch(t *testing.T, args ...string) *watcher {
	t.Helper()
	return startCommand(t, append([]string{"kvstore", "watch"}, args...)...)
}

func startCommand(t *testing.T, args ...string) *watcher {
	t.Helper()
	w := &watcher{t: t, cmd: program(t, args...)}
	pipe := func(open func() (io.ReadCloser, error)) *bufio.Scanner {
		r, err := open()
		if err != nil {
			t.Fatal(err)
		}
		return bufio.NewScanner(r)
	}
	w.out, w.err = pipe(w.cmd.StdoutPipe), pipe(w.cmd.StderrPipe)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(10*time.Minute, func() { _ = w.cmd.Process.Signal(syscall.SIGQUIT) })
	t.Cleanup(func() {
		giveUp.Stop()
		if w.cmd.ProcessState == nil {
			_ = w.cmd.Process.Kill()
			_ = w.cmd.Wait()
		}
	})
	return w
}

// lines reads n lines of data.
func (w *watcher) lines(n int) []string {
	w.t.Helper()
	var lines []string
	for range n {
		if !w.out.Scan() {
			w.t.Fatalf("the watch ended after %q", lines)
		}
		lines = append(lines, w.out.Text())
	}
	return lines
}

// says waits for a message.
func (w *watcher) says(part string) {
	w.t.Helper()
	var heard []string
	for w.err.Scan() {
		if strings.Contains(w.err.Text(), part) {
			return
		}
		heard = append(heard, w.err.Text())
	}
	w.t.Fatalf("never said %q, but %q", part, heard)
}

// interrupt ends it as Ctrl-C does.
func (w *watcher) interrupt() {
	w.t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		w.t.Fatal(err)
	}
	if w.out.Scan() {
		w.t.Errorf("one more line: %s", w.out.Text())
	}
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("interrupted: %v", err)
	}
}

func TestAWatchSurvivesItsServer(t *testing.T) {
	t.Parallel()
	s := etcdtest.StartProcess(t)
	put := func(key, value string) {
		t.Helper()
		if _, err := s.Client(t).Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	put("cilium/x/a", "1")
	put("cilium/x/b", "1")
	w := startWatch(t, "cilium/x", "--kvstore-opt", "etcd.address="+s.Endpoint(), "--timeout", "3s")
	w.says(`There is no key "cilium/x"; taken as the prefix "cilium/x/"`)
	w.says("Watching")
	want(t, w.lines(2), "have\tcilium/x/a\t1", "have\tcilium/x/b\t1")
	put("cilium/x/a", "2")
	want(t, w.lines(1), "put\tcilium/x/a\t2")
	// While it is away there is nobody to ask; it says so, and goes on.
	s.Kill(t)
	w.says("Interrupted, trying again")
	s.Restart(t)
	w.says("Going on at")
	if _, err := s.Client(t).Delete(t.Context(), "cilium/x/b"); err != nil {
		t.Fatal(err)
	}
	put("cilium/x/a", "3")
	got := w.lines(2)
	slices.Sort(got) // a list that follows a resumption may order them otherwise
	want(t, got, "delete\tcilium/x/b", "put\tcilium/x/a\t3")
	w.interrupt()
}

// TestAWatchFromNow leaves out what was there, and knows it nevertheless.
func TestAWatchFromNow(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t)
	s.Put(t, "k", "old")
	w := startWatch(t, "k", "--from-now", "-o", "json", "--kvstore-opt", "etcd.address="+s.Endpoint())
	w.says(`Watching "k" of the local kvstore`)
	// The list may come after this write, which then is not new: write until one is.
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
	var event shownKey
	if err := json.Unmarshal([]byte(first[0]), &event); err != nil || event.Event != eventPut || event.Key != "k" || event.Value == nil || *event.Value == "old" {
		t.Errorf("%v %s", err, first[0])
	}
	s.Delete(t, "k")
	for {
		line := w.lines(1)[0]
		if strings.Contains(line, `"event":"delete"`) {
			want(t, []string{line}, `{"event":"delete","key":"k"}`)
			break
		}
	}
	w.interrupt()
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestValuesOnOneLine: no value breaks a line or reaches the terminal raw.
func TestValuesOnOneLine(t *testing.T) {
	t.Parallel()
	for value, text := range map[string]string{
		"":                "",
		"plain":           "plain",
		"ä b":             "ä b",
		"a\tb":            `"a\tb"`,
		"\x1b[31mred":     `"\x1b[31mred"`,
		"\xc3\x28":        "base64:wyg=",
		"\u202eright":     `"\u202eright"`,
		`{"a":"b\u0000"}`: `{"a":"b\u0000"}`,
	} {
		if got := show(kvstore.KeyValue{Key: []byte("k")}).withValue("k", []byte(value)).text(); got != text {
			t.Errorf("%q: %s, want %s", value, got, text)
		}
	}
	if s := show(kvstore.KeyValue{Key: []byte("\xff"), Lease: 255, ModRevision: 7}); s.KeyBase64 != "/w==" || s.Lease != "ff" || s.ModRevision != 7 {
		t.Errorf("%+v", s)
	}
}
