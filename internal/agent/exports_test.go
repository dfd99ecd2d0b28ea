package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
)

// exported is the service web with a session affinity, and its export of a year.
func exported(affinity string, year int) string {
	return strings.Replace(web, "  clusterIP:", "  sessionAffinity: "+affinity+"\n  clusterIP:", 1) + fmt.Sprintf(`---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceExport
metadata:
  name: web
  namespace: shop
  creationTimestamp: "%d-01-01T00:00:00Z"
`, year)
}

// TestTwoClustersOfOursDisagree: each publishes its export, and an agent of one of
// them finds that the session affinities differ, until they do not.
func TestTwoClustersOfOursDisagree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	operate := func(name, id, manifest string) (etcd *etcdtest.Server, file string) {
		etcd, manifests := etcdtest.Start(t), t.TempDir()
		file = filepath.Join(manifests, "web.yaml")
		agenttest.Must(t, os.WriteFile(file, []byte(manifest), 0o600))
		a := agenttest.StartMode(t, config.ModeOperate, nil, "--cluster-name", name, "--cluster-id", id, "--local-manifests", manifests,
			"--kvstore-opt", "etcd.address="+etcd.Endpoint(), "--clustermesh-enable-mcs-api")
		if out, errs, code := a.Call("status", "--wait", "--timeout", "10m"); code != exit.OK {
			t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
		}
		return etcd, file
	}
	east, _ := operate("east", "1", exported("ClientIP", 2025))
	west, file := operate("west", "2", exported("None", 2024))
	text, err := os.ReadFile(west.ConfigFile(t))
	agenttest.Must(t, err)
	agenttest.Must(t, os.WriteFile(filepath.Join(dir, "west"), text, 0o600))
	a := agenttest.StartMode(t, config.ModeRun, nil, "--cluster-name", "east", "--cluster-id", "1", "--kvstore-opt", "etcd.address="+east.Endpoint(), "--clustermesh-config", dir)
	conflict := "MESH-2152 service-affinity/shop/web west,east"
	a.Until("the conflict", func() bool { return slices.Equal(a.Conflicts(), []string{conflict}) })
	if all := agenttest.List[api.ServiceExport](a, "serviceexports"); len(all) != 2 || all[0].SessionAffinity != "ClientIP" || all[0].SessionAffinityTimeoutSeconds != 10800 || all[1].SessionAffinity != "None" {
		t.Errorf("%+v", all)
	}
	out, _, _ := a.Call("describe", "service", "shop/web")
	for _, part := range []string{
		"through the MCS API it exports it since 2025-01-01T00:00:00Z, with session affinity ClientIP for 10800 s", "cilium/state/serviceexports/v1/west/shop/web",
		"None in west, ClientIP for 10800 s in east; that of west counts",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), part) {
			t.Errorf("describe does not say %q:\n%s", part, out)
		}
	}
	agenttest.Must(t, os.WriteFile(file, []byte(exported("ClientIP", 2024)), 0o600))
	a.Until("it to be over", func() bool { return len(a.Conflicts()) == 0 })
	if out, _, _ := a.Call("describe", "service", "shop/web"); strings.Contains(out, "ServiceExport") {
		t.Errorf("they agree, and describe says:\n%s", out)
	}
}

// TestExportsOfManifestsAlone: an agent without a kvstore knows its own exports
// from the manifests, and finds those of other clusters that disagree.
func TestExportsOfManifestsAlone(t *testing.T) {
	t.Parallel()
	manifests := t.TempDir()
	file := filepath.Join(manifests, "web.yaml")
	agenttest.Must(t, os.WriteFile(file, []byte(exported("ClientIP", 2025)), 0o600))
	a := agenttest.StartMode(t, config.ModeRun, nil, "--cluster-name", "east", "--cluster-id", "1", "--local-manifests", manifests)
	own := func() []api.ServiceExport { return agenttest.List[api.ServiceExport](a, "serviceexports") }
	a.Until("its own export", func() bool { return len(own()) == 1 })
	if e := own()[0]; e.Cluster != "east" || e.Namespace != "shop" || e.Name != "web" || e.SessionAffinity != "ClientIP" || e.Created.Year() != 2025 {
		t.Errorf("%+v", e)
	}
	if out, errs, code := a.Call("get", "serviceexports"); code != exit.OK || !strings.Contains(out, "web") {
		t.Errorf("get serviceexports: exit %d\n%s%s", code, out, errs)
	}
	agenttest.Must(t, os.WriteFile(file, []byte(exported("None", 2025)), 0o600))
	a.Until("its change", func() bool { all := own(); return len(all) == 1 && all[0].SessionAffinity == "None" })
	agenttest.Must(t, os.WriteFile(file, []byte(web), 0o600))
	a.Until("its end", func() bool { return len(own()) == 0 })
}
