package configcheck_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/cli/clitest"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/checks"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestConfigCheckSeesARotatedCertificate: the agent has connected with another
// certificate than the one that the client file leads to now. When it connects
// again, it uses that one, and nothing would change any more.
func TestConfigCheckSeesARotatedCertificate(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	etcd := etcdtest.Start(t, etcdtest.WithTLS(certs))
	etcd.Put(t, wire.ClusterConfigKey("cluster2"), `{"id":2,"capabilities":{}}`)
	file := etcd.ConfigFile(t)
	dir := filepath.Dir(file)
	a, _ := agenttest.InProcess(t, map[string]string{"clustermesh-config": dir, "cluster-name": "own", "cluster-id": "250"})
	connected := func() bool {
		return slices.ContainsFunc(agenttest.List[api.Cluster](a, "clusters"), func(c api.Cluster) bool { return c.Connected })
	}
	a.Until("the cluster", connected)
	changes := func() []checks.Change {
		t.Helper()
		got := clitest.CheckerNow(dir, "--diff", "--socket", a.Socket, "-o", "json", "--cluster-name=own", "--cluster-id=250")
		var r checks.Report
		if err := json.Unmarshal([]byte(got.Out), &r); err != nil || r.Diff == nil {
			t.Fatalf("%v: %+v", err, got)
		}
		return r.Diff.Changes
	}
	if all := changes(); len(all) != 0 {
		t.Fatalf("before the rotation: %+v", all)
	}
	certs.Client(t, "root") // a new certificate with a new key, in the same files
	if all := changes(); len(all) != 1 || all[0].Change != checks.Modify || !strings.Contains(strings.Join(all[0].What, ""), "certificate or key") || all[0].Vanish != nil {
		t.Errorf("after the rotation: %+v", all)
	}
	text, err := os.ReadFile(file)
	agenttest.Must(t, err)
	agenttest.Must(t, os.WriteFile(file, append(text, "# again\n"...), 0o600)) // which makes a new connection
	a.Until("the new certificate to be used", func() bool { return connected() && len(changes()) == 0 })
}
