package chart

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestTheSchemaHasEveryValue: the schema has exactly the values of values.yaml, and Helm's own "global".
func TestTheSchemaHasEveryValue(t *testing.T) {
	t.Parallel()
	c := load(t)
	var schema struct {
		Properties map[string]any
	}
	waittest.Must(t, json.Unmarshal(c.Schema, &schema))
	delete(schema.Properties, "global")
	described(t, "", schema.Properties, c.Values)
}

func described(t *testing.T, below string, properties, values map[string]any) {
	t.Helper()
	same(t, "values below "+below+"/", slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(properties)))
	for name, property := range properties {
		deeper, is := property.(map[string]any)["properties"].(map[string]any)
		if value, has := values[name].(map[string]any); is && has {
			described(t, below+"/"+name, deeper, value)
		}
	}
}

// TestWhatIsRefused: with a message that names the value.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	c := load(t)
	for values, message := range map[string]string{
		// By the schema.
		"agnet.enabled=true":                                 "agnet",
		"agent.enable=true":                                  "/agent",
		"agent.port=0":                                       "/agent/port",
		"agent.port=70000":                                   "/agent/port",
		"agent.dns.host=node-1":                              "/agent/dns/host",
		"agent.dns.zones={Upper.case}":                       "/agent/dns/zones/0",
		"agent.maxUnavailable=110%":                          "/agent/maxUnavailable",
		"agent.resources.limits.memory=1G":                   "/agent/resources/limits/memory",
		"agent.resources.limits=null":                        "/agent/resources",
		"agent.dns=null":                                     "'dns'",
		"api.tls=null":                                       "'tls'",
		"monitoring=null":                                    "'monitoring'",
		"securityContext.runAsUser=0":                        "/securityContext/runAsUser",
		"agent.settings.--debug=1":                           "'--debug'",
		"agent.settings.labels.a=b":                          "/agent/settings/labels",
		"agent.extraEnv[0].name=A,agent.extraEnv[0].value=1": "/agent/extraEnv/0/value",
		"agent.tolerations[0].effekt=NoSchedule":             "/agent/tolerations/0",
		"operate.enabled=maybe":                              "/operate/enabled",
		"operate.replicas=0":                                 "/operate/replicas",
		"mirror.replicas=10":                                 "/mirror/replicas",
		"mirror.clustersSecret=":                             "/mirror/clustersSecret",
		"name=Mesh_Agent":                                    "/name",
		"name=a" + strings.Repeat("b", 40):                   "/name",
		"image.digest=sha256:1":                              "/image/digest",
		"image.pullPolicy=Sometimes":                         "/image/pullPolicy",
		"image.repository=a b":                               "/image/repository",
		"cluster.id=512":                                     "/cluster/id",
		"cluster.name=East":                                  "/cluster/name",
		"cluster.maxConnectedClusters=300":                   "/cluster/maxConnectedClusters",
		"cluster.serviceCIDRs={10.96.0.0}":                   "/cluster/serviceCIDRs/0",
		"etcd.endpoints={etcd.example:2379}":                 "/etcd/endpoints/0",
		"etcd.secrets.admin=x":                               "/etcd/secrets",
		"identities.mode=both":                               "/identities/mode",
		"identities.leaseNamespace=a.b":                      "/identities/leaseNamespace",
		"api.host=":                                          "/api/host",
		"monitoring.podMonitor.interval=often":               "/monitoring/podMonitor/interval",
		"monitoring.discovery.roles[0].path=pods":            "/monitoring/discovery/roles/0",
		"networkPolicy.etcd.ports={etcd}":                    "/networkPolicy/etcd/ports/0",
		"services.dns.clusterIP=none":                        "/services/dns/clusterIP",
		"commonLabels.a=1":                                   "/commonLabels/a",
		"agent.podAnnotations.a=true":                        "/agent/podAnnotations/a",
		"etcdUsers.settings.a=b":                             "/etcdUsers",
		"meshDirectory.remoteCertSecret=../../etc":           "/meshDirectory/remoteCertSecret",
		"agent.nodeSelector=linux":                           "/agent/nodeSelector",
		"agent.priorityClassName=system node":                "/agent/priorityClassName",
		"identities.defineKind=yes":                          "/identities/defineKind",
		"operate.mcsAPI=true":                                "/operate/mcsAPI",
		"agent.xds.port=http":                                "/agent/xds/port",
		// By templates: values that exclude each other, or need each other.
		"cluster.name=east":                        "cluster.id: ",
		"cluster.id=7":                             "cluster.name: ",
		"cluster.name=east,cluster.id=300":         "cluster.id: 300 ",
		"identities.defineKind=true":               "identities.defineKind: ",
		"api.host=0.0.0.0":                         "api.host: 0.0.0.0 ",
		"api.host=10.0.0.1":                        "api.host: 10.0.0.1 ",
		"api.tls.secret=tls,api.insecure=true":     "api.insecure: ",
		"agent.xds.enabled=true,agent.xds.host=::": "agent.xds.host: ",
		"agent.hostNetwork=false":                  "agent.hostNetwork: ",
		"operate.enabled=true,operate.port=9979":   "operate.port: 9979 ",
		"agent.hostNetwork=false,api.host=0.0.0.0,api.insecure=true,agent.dns.enabled=true": "agent.dns.host: ",
		"agent.hostNetwork=false,api.host=0.0.0.0,api.insecure=true,agent.xds.enabled=true": "agent.xds.host: ",
		"agent.dns.enabled=true,agent.dns.port=9979":                                        "agent.dns.port: 9979 ",
		"agent.settings.listen=0.0.0.0:1":                                                   "agent.settings.listen: ",
		"agent.settings.dns=0.0.0.0:53":                                                     "agent.settings.dns: ",
		"networkPolicy.enabled=true":                                                        "networkPolicy.enabled: ",
		"services.api=true":                                                                 "services.api: ",
		"services.dns.enabled=true":                                                         "services.dns.enabled: ",
		"services.xds.enabled=true,agent.xds.enabled=true":                                  "services.xds.enabled: ",
		"monitoring.podMonitor.enabled=true":                                                "monitoring.podMonitor.enabled: ",
		"monitoring.serviceMonitor.enabled=true,api.insecure=true,api.host=0.0.0.0":         "monitoring.serviceMonitor.enabled: ",
		"monitoring.discovery.enabled=true,services.api=true,api.insecure=true,api.host=0.0.0.0,agent.enabled=false": "monitoring.discovery.enabled: ",
	} {
		parsed, err := strvals.Parse(values)
		waittest.Must(t, err)
		if _, err := Render(c, parsed); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, which has no %q", values, err, message)
		}
	}
}

// TestWithoutFiles: files that a packaged chart lacks cannot be turned on.
func TestWithoutFiles(t *testing.T) {
	t.Parallel()
	c := load(t)
	c.Files = nil
	for _, path := range []string{"monitoring.rules.enabled", "monitoring.rules.configMap", "monitoring.dashboards.enabled"} {
		values := map[string]any{}
		set(path, true)(values)
		if _, err := Render(c, values); err == nil || !strings.Contains(err.Error(), "packaged without") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestHostileValues: any text in a free value stays within its argument, label or name.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, hostile := range []string{
		"", " ", "a b", "a: b", "a #b", "#", "- x", "---", "\n---\nkind: Secret\n", "'", `"`, "\"\n  privileged: true\n", `\`, "{{ .Values }}", "*a", "&a", "!!x",
		"yes", "null", "~", "1e3", "0x1", "1.0", "[", "{", "|", ">", "%", "@", "`", "\t", "\x00", "\u2028", "\ufeff", "é", "<&>", "$(MESH_AGENT_NODE_NAME)", strings.Repeat("long word ", 50),
	} {
		values := map[string]any{}
		set("agent.settings", map[string]any{"labels": hostile, "kvstore-opt": []any{hostile, "a"}})(values)
		set("agent.podAnnotations", map[string]any{"note": hostile})(values)
		set("agent.extraEnv", []any{map[string]any{"name": "NOTE", "value": hostile}})(values)
		set("monitoring.dashboards.annotations", map[string]any{"note": hostile})(values)
		set("monitoring.dashboards.enabled", true)(values)
		all := objects(t, c, values)
		template, _ := pod(t, find(t, all, "DaemonSet", "mesh-agent"))
		container := template.Spec.Containers[0]
		same(t, "arguments", []string{
			"run", "--clustermesh-config=/var/lib/cilium/clustermesh/", "--listen=127.0.0.1:9979", "--socket=/var/run/mesh-agent/mesh-agent.sock",
			"--kvstore-opt=" + hostile, "--kvstore-opt=a", "--labels=" + hostile,
		}, container.Args)
		same(t, "variable", hostile, container.Env[len(container.Env)-1].Value)
		same(t, "annotation", map[string]string{"note": hostile}, template.Annotations)
		checkAll(t, hostile, all)
		for _, o := range all {
			if o.GetKind() == "ConfigMap" {
				same(t, "annotation", map[string]string{"note": hostile}, o.GetAnnotations())
			}
		}
	}
}

// TestNumbers: numbers of any size are rendered as they were given.
func TestNumbers(t *testing.T) {
	t.Parallel()
	values := map[string]any{"agent": map[string]any{"settings": map[string]any{
		"remote-write-rate": 1000000, "same-node-first": true, "dns-max-queries": float64(12345678), "own-kvstore-stop-at": int64(0),
	}}}
	template, _ := pod(t, find(t, objects(t, load(t), values), "DaemonSet", "mesh-agent"))
	same(t, "arguments", []string{"--dns-max-queries=12345678", "--own-kvstore-stop-at=0", "--remote-write-rate=1000000", "--same-node-first=true"}, template.Spec.Containers[0].Args[4:])
}
