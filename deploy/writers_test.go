package deploy

import (
	"path"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// readDeployments reads deploy/operate.yaml and deploy/mirror.yaml, by mode.
func readDeployments(t *testing.T) map[string]*appsv1.Deployment {
	t.Helper()
	all := map[string]*appsv1.Deployment{"operate": new(appsv1.Deployment), "mirror": new(appsv1.Deployment)}
	for mode, d := range all {
		readStrictly(t, mode+".yaml", appsv1.AddToScheme, d)
	}
	return all
}

// readMember reads deploy/mesh-agent-member.yaml, which changes the DaemonSet.
func readMember(t *testing.T) *manifest {
	t.Helper()
	m := new(manifest)
	readStrictly(t, "mesh-agent-member.yaml", appsv1.AddToScheme, &m.daemons)
	m.workload = workload{&m.daemons.Spec.Template}
	return m
}

// TestTwoOfEachModeThatLeads: on different nodes, beside the DaemonSet, and as
// harmless as that.
func TestTwoOfEachModeThatLeads(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	ports := map[int32]string{m.checkProbes(t): "the DaemonSet"}
	for mode, d := range readDeployments(t) {
		w := workload{&d.Spec.Template}
		want(t, "kind", metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, d.TypeMeta)
		want(t, "name", "mesh-agent-"+mode, d.Name)
		want(t, "namespace", m.daemons.Namespace, d.Namespace)
		want(t, "replicas", new(int32(2)), d.Spec.Replicas)
		want(t, "labels", map[string]string{"app.kubernetes.io/name": d.Name}, w.template.Labels)
		want(t, "selector", w.template.Labels, d.Spec.Selector.MatchLabels)
		want(t, "update", appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(0))},
		}, d.Spec.Strategy)
		want(t, "account", m.account.Name, w.pod().ServiceAccountName)
		want(t, "token", new(mode == "operate"), w.pod().AutomountServiceAccountToken)
		want(t, "image", m.container().Image, w.container().Image)
		want(t, "containers", 1, len(w.pod().Containers)+len(w.pod().InitContainers))
		want(t, "network", true, w.pod().HostNetwork)
		want(t, "DNS", corev1.DNSClusterFirstWithHostNet, w.pod().DNSPolicy)
		want(t, "service links", new(false), w.pod().EnableServiceLinks)
		want(t, "time to end", m.pod().TerminationGracePeriodSeconds, w.pod().TerminationGracePeriodSeconds)
		w.checkPrivileges(t)
		port := w.checkProbes(t)
		if ports[port] != "" {
			t.Errorf("%s wants the port of %s", mode, ports[port])
		}
		ports[port] = mode
		for _, toleration := range w.pod().Tolerations {
			if toleration.Key == "" || strings.HasSuffix(toleration.Key, "unreachable") {
				t.Errorf("%s stays on a node that is lost: %+v", mode, toleration)
			}
		}
	}
}

// TestWritersFindTheOwnEtcd: its client file and certificates are where the flags
// look, and a mirror's remote clusters too.
func TestWritersFindTheOwnEtcd(t *testing.T) {
	t.Parallel()
	member := readMember(t)
	member.checkEtcd(t, find(member.container().Env, func(v corev1.EnvVar) bool { return v.Name == "MESH_AGENT_KVSTORE_OPT" }).Value)
	for mode, d := range readDeployments(t) {
		w := workload{&d.Spec.Template}
		w.checkEtcd(t, w.flag(t, "kvstore-opt"))
		want(t, "mounts of volumes", len(w.pod().Volumes), len(w.container().VolumeMounts))
		if socket := w.at(path.Dir(w.flag(t, "socket"))); socket.EmptyDir == nil {
			t.Errorf("%s: the socket is on %+v", mode, socket)
		}
		if mode != "mirror" {
			continue
		}
		var secrets []string
		for _, source := range w.at(path.Clean(w.flag(t, "clustermesh-config"))).Projected.Sources {
			want(t, "optional", new(true), source.Secret.Optional)
			secrets = append(secrets, source.Secret.Name)
		}
		want(t, "secrets", []string{"cilium-kvstoremesh", "clustermesh-apiserver-remote-cert"}, secrets)
	}
}

// at is the volume that is mounted at a path.
func (w workload) at(where string) corev1.Volume {
	return w.volume(find(w.container().VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == where }).Name)
}

// checkEtcd wants the client file of an option to be there, and certificates.
func (w workload) checkEtcd(t *testing.T, option string) {
	t.Helper()
	file, is := strings.CutPrefix(option, "etcd.config=")
	config := w.at(path.Dir(file)).ConfigMap
	if !is || config == nil {
		t.Fatalf("the etcd is %q, of %+v", option, config)
	}
	want(t, "client file", []corev1.KeyToPath{{Key: "etcd-config", Path: path.Base(file)}}, config.Items)
	secrets := w.at("/var/lib/etcd-secrets").Secret
	if secrets == nil {
		t.Fatal("there are no certificates")
	}
	want(t, "certificates", &corev1.SecretVolumeSource{SecretName: "cilium-etcd-secrets", Optional: new(true), DefaultMode: new(int32(0o400))}, secrets)
}

// checkMember: the patch changes the DaemonSet's container, by variables, and takes
// nothing from it.
func (m *manifest) checkMember(t *testing.T, help string) {
	t.Helper()
	of := readManifest(t)
	want(t, "kind", of.daemons.TypeMeta, m.daemons.TypeMeta)
	want(t, "name", of.daemons.Namespace+"/"+of.daemons.Name, m.daemons.Namespace+"/"+m.daemons.Name)
	want(t, "container", of.container().Name, m.container().Name)
	want(t, "token", new(true), m.pod().AutomountServiceAccountToken)
	want(t, "mounts of volumes", len(m.pod().Volumes), len(m.container().VolumeMounts))
	want(t, "arguments", 0, len(m.container().Args))
	want(t, "variables", []string{
		"MESH_AGENT_KUBERNETES true", "MESH_AGENT_KVSTORE_OPT etcd.config=/var/lib/etcd-config/etcd.config", "MESH_AGENT_NODE_IP status.hostIP",
	}, m.variables(t, flagsOf(help)))
}
