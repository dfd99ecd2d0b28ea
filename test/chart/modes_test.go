package chart

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// parsed are values as given with --set.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	values, err := strvals.Parse(text)
	waittest.Must(t, err)
	return values
}

// container is the container of the pod of an object.
func container(t *testing.T, values, kind, name string) corev1.Container {
	t.Helper()
	template, _ := pod(t, find(t, objects(t, load(t), parsed(t, values)), kind, name))
	return template.Spec.Containers[0]
}

// TestSettingsOfAMember: options of the own etcd are given in addition to its client file. A flag replaces its
// variable.
func TestSettingsOfAMember(t *testing.T) {
	t.Parallel()
	args := container(t, "agent.member=true,agent.settings.kvstore-opt={etcd.qps=100}", "DaemonSet", "mesh-agent").Args
	same(t, "flags", []string{"--kvstore-opt=etcd.config=/var/lib/etcd-config/etcd.config", "--kvstore-opt=etcd.qps=100"},
		slices.DeleteFunc(args, func(a string) bool { return !strings.HasPrefix(a, "--kvstore-opt") }))
}

// TestNetworksOfOperators: an operator that reads remote clusters is given the own networks, like agents.
func TestNetworksOfOperators(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{"": false, ",operate.endpointSlices=true": true, ",operate.mcsAPI.enabled=true": true} {
		env := container(t, "operate.enabled=true,cluster.serviceCIDRs={10.96.0.0/12}"+values, "Deployment", "mesh-agent-operate").Env
		if got := slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == "MESH_AGENT_SERVICE_CIDR" && v.Value == "10.96.0.0/12" }); got != want {
			t.Errorf("%q: the network is known: %v, want %v", values, got, want)
		}
	}
}

// TestTwoInTheirOwnNetwork: without host ports, another setting spreads them over nodes.
func TestTwoInTheirOwnNetwork(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"operate", "mirror"} {
		values := parsed(t, mode+".enabled=true,"+mode+".hostNetwork=false,"+mode+".port=9979,api.host=0.0.0.0,api.insecure=true")
		template, _ := pod(t, find(t, objects(t, load(t), values), "Deployment", "mesh-agent-"+mode))
		if spread := template.Spec.TopologySpreadConstraints; len(spread) != 1 || spread[0].LabelSelector.MatchLabels["app.kubernetes.io/name"] != "mesh-agent-"+mode {
			t.Errorf("%s: %+v", mode, spread)
		}
	}
}

// TestUsersOfThePlatform: null leaves the user and the groups to the platform, in every pod.
func TestUsersOfThePlatform(t *testing.T) {
	t.Parallel()
	const all = "operate.enabled=true,mirror.enabled=true"
	for values, want := range map[string][3]int64{
		all: {65532, 65532, 65532},
		all + ",securityContext.runAsUser=null,securityContext.runAsGroup=null,securityContext.fsGroup=null": {},
		all + ",securityContext.runAsUser=1000650000,securityContext.fsGroup=null":                           {1000650000, 65532, 0},
	} {
		for _, o := range objects(t, load(t), parsed(t, values)) {
			template, is := pod(t, o)
			if !is {
				continue
			}
			c, value := template.Spec.SecurityContext, func(p *int64) int64 {
				if p == nil {
					return 0
				}
				return *p
			}
			if got := [3]int64{value(c.RunAsUser), value(c.RunAsGroup), value(c.FSGroup)}; got != want || !*c.RunAsNonRoot {
				t.Errorf("%s: %s: %v, want %v", values, named(o), got, want)
			}
		}
	}
}

// TestWhoRestartsWithTheEtcd: a change of the endpoints replaces only pods that use them.
func TestWhoRestartsWithTheEtcd(t *testing.T) {
	t.Parallel()
	all := objects(t, load(t), parsed(t, "etcd.endpoints={https://etcd.example:2379},operate.enabled=true"))
	for name, want := range map[string]bool{"DaemonSet mesh-agent": false, "Deployment mesh-agent-operate": true} {
		kind, object, _ := strings.Cut(name, " ")
		template, _ := pod(t, find(t, all, kind, object))
		if _, got := template.Annotations["checksum/etcd-config"]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestAnotherName: the rules and dashboards select the jobs of this name.
func TestAnotherName(t *testing.T) {
	t.Parallel()
	c, err := loader.Load(filepath.Join(deploy, "chart")) // with the real files
	waittest.Must(t, err)
	texts, err := Render(c, parsed(t, "name=meshview,monitoring.rules.enabled=true,monitoring.rules.configMap=true,monitoring.dashboards.enabled=true"))
	waittest.Must(t, err)
	for _, name := range []string{"rules.yaml", "dashboards.yaml"} {
		if strings.Contains(texts[name], ".*mesh-agent.*") || !strings.Contains(texts[name], ".*meshview.*") {
			t.Errorf("%s has not the jobs of this name: %s", name, texts[name])
		}
	}
}

// TestRightsForDefinitions: only an operator that installs definitions may write them.
func TestRightsForDefinitions(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{"false": false, "true": true} {
		texts, err := Render(load(t), parsed(t, "operate.enabled=true,operate.mcsAPI.enabled=true,operate.mcsAPI.installCRDs="+values))
		waittest.Must(t, err)
		if got := strings.Contains(texts["operate-mcs.yaml"]+texts["operate-mcs-crds.yaml"], "customresourcedefinitions"); got != want {
			t.Errorf("installCRDs=%s: rights for definitions %v", values, got)
		}
	}
}

// TestNamespaceOfLeases: the rights and the processes have the same one.
func TestNamespaceOfLeases(t *testing.T) {
	t.Parallel()
	all := objects(t, load(t), parsed(t, "agent.member=true,operate.enabled=true,identities.mode=crd,identities.leaseNamespace=mesh-leases"))
	for _, kind := range []string{"Role", "RoleBinding"} {
		same(t, kind, "mesh-leases", find(t, all, kind, "mesh-agent-identities").GetNamespace())
	}
	for kind, name := range map[string]string{"DaemonSet": "mesh-agent", "Deployment": "mesh-agent-operate"} {
		template, _ := pod(t, find(t, all, kind, name))
		if !slices.ContainsFunc(template.Spec.Containers[0].Env, func(v corev1.EnvVar) bool { return v.Name == "MESH_AGENT_K8S_NAMESPACE" && v.Value == "mesh-leases" }) {
			t.Errorf("%s %s does not know the namespace", kind, name)
		}
	}
}
