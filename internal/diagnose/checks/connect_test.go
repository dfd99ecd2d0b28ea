package checks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/troubleshoot"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// patient has deadlines that a busy machine meets, and our own cluster.
func patient() troubleshoot.Options {
	return troubleshoot.Options{
		Own: wire.ClusterInfo{Name: "own", ID: 1, MaxConnectedClusters: 255},
		Timings: troubleshoot.Timings{
			Resolve: 20 * time.Second, Dial: 20 * time.Second, TLS: 20 * time.Second,
			Etcd: 20 * time.Second, Read: 20 * time.Second, Total: time.Minute,
		},
	}
}

// server is an etcd with a heartbeat and these configurations.
func server(t *testing.T, configs map[string]string, opts ...etcdtest.Option) *etcdtest.Server {
	t.Helper()
	s := etcdtest.Start(t, opts...)
	s.Put(t, wire.HeartbeatKey, string(wire.EncodeTimestamp(time.Now())))
	for name, config := range configs {
		s.Put(t, wire.ClusterConfigKey(name), config)
	}
	return s
}

func plainFile(s *etcdtest.Server) string { return "endpoints: ['" + s.Endpoint() + "']" }

// checkServers checks the findings about the servers behind the files, and among them.
func checkServers(t *testing.T, all *gathered) {
	w := newWorld(t)
	const id2, id3 = `{"id":2,"capabilities":{}}`, `{"id":3,"capabilities":{}}`
	certs := etcdtest.NewCerts(t, "c2.mesh.cilium.io")
	cert, key := certs.Client(t, "remote")
	misnamed := server(t, map[string]string{"misnamed": `{"id":9,"capabilities":{}}`}, etcdtest.WithTLS(certs))
	both := server(t, map[string]string{"both1": `{"id":11,"capabilities":{}}`, "both2": `{"id":12,"capabilities":{}}`})
	mirror := server(t, map[string]string{"copy1": `{"id":21,"capabilities":{"cached":true}}`, "copy2": `{"id":22,"capabilities":{"cached":true}}`})
	for name, text := range map[string]string{
		"well":   plainFile(server(t, map[string]string{"well": `{"id":7,"capabilities":{}}`})),
		"twice1": plainFile(server(t, map[string]string{"twice1": id2})), "twice2": plainFile(server(t, map[string]string{"twice2": id2})),
		"taken": plainFile(server(t, map[string]string{"taken": `{"id":1,"capabilities":{}}`})),
		"empty": plainFile(server(t, map[string]string{"other": id3})),
		"both1": plainFile(both), "both2": plainFile(both) + " # another file",
		"copy1": plainFile(mirror), "copy2": plainFile(mirror),
		"gone":     "endpoints: ['http://127.0.0.1:1']",
		"broken":   "endpoints: [x",
		"misnamed": fmt.Sprintf("endpoints: ['%s']\ntrusted-ca-file: %s\ncert-file: %s\nkey-file: %s", misnamed.Endpoint(), certs.CAFile, cert, key),
		"own":      plainFile(both),
	} {
		w.file(name, text)
	}
	r := w.report(time.Now())
	r.Connect(t.Context(), patient())
	all.add(r)
	for name, want := range map[string][]found{
		"well":     nil,
		"twice1":   {{codes.ClusterIDConflict, "cluster ID 2 is that of twice1 and twice2"}},
		"twice2":   {{codes.ClusterIDConflict, "cluster ID 2 is that of twice1 and twice2"}},
		"taken":    {{codes.ClusterIDConflict, `cluster-configuration: cluster ID 1 is already used by our own cluster "own"`}},
		"empty":    {{codes.ConfigurationMissing, "cluster-configuration: there is no key cilium/cluster-config/empty"}},
		"both1":    {{codes.EtcdShared, "is that of both1 and both2"}},
		"both2":    {{codes.EtcdShared, "is that of both1 and both2"}},
		"copy1":    nil,
		"copy2":    {{codes.SameContents, "the same contents as copy1"}},
		"gone":     {{codes.ConnectionRefused, "tcp of http://127.0.0.1:1: dial tcp"}},
		"broken":   {{codes.ClientFileNoYAML, "yaml"}},
		"misnamed": {{codes.ServerNameOther, "server-certificate of " + misnamed.Endpoint() + ": "}},
		"own":      {{codes.OwnClusterFile, ""}},
	} {
		f := r.of(t, name)
		wantFindings(t, f.Findings, want)
		verdict := WouldConnect
		switch {
		case name == "own":
			verdict = WouldIgnore
		case strings.Contains("taken empty gone broken misnamed", name):
			verdict = WouldFail
		}
		if f.Verdict != verdict {
			t.Errorf("%s would %s, want %s", name, f.Verdict, verdict)
		}
	}
	if f := r.of(t, "well"); f.ClusterID != 7 || f.EtcdClusterID == "" || !r.Connected {
		t.Errorf("%+v", f)
	}
	if r.Errors != 7 || r.Warnings != 2 {
		t.Errorf("%d errors, %d warnings", r.Errors, r.Warnings)
	}
}

// TestEtcdsOfOneID are common where one manifest made them: only their contents
// report whether they are one.
func TestEtcdsOfOneID(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mark1, mark2 string
		cached       bool
		shared       bool
	}{
		"one":         {mark1: "7 2026", mark2: "7 2026", shared: true},
		"two":         {mark1: "7 2026", mark2: "9 2026"},
		"not known":   {},
		"of a mirror": {mark1: "7 2026", mark2: "7 2026", cached: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Report{Files: []File{{Cluster: "a"}, {Cluster: "b"}, {Cluster: "c"}}}
			r.sameEtcds([]troubleshoot.Report{
				{Name: "a", EtcdClusterID: "cdf8", EtcdMark: c.mark1},
				{Name: "b", EtcdClusterID: "cdf8", EtcdMark: c.mark2, Cached: c.cached},
				{Name: "c"},
			})
			for _, f := range r.Files {
				if f.has(codes.EtcdShared) != (c.shared && f.Cluster != "c") {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
