package deploy

import (
	"path"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deployment is a manifest of a mode of which two run.
type deployment struct {
	account corev1.ServiceAccount
	role    rbacv1.ClusterRole // of operate alone
	binding rbacv1.ClusterRoleBinding
	budget  policyv1.PodDisruptionBudget
	appsv1.Deployment
	workload
}

// readDeployments reads deploy/operate.yaml and deploy/mirror.yaml, by mode.
func readDeployments(t *testing.T) map[string]*deployment {
	t.Helper()
	all := map[string]*deployment{"operate": new(deployment), "mirror": new(deployment)}
	add := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, policyv1.AddToScheme)
	for mode, d := range all {
		documents := []runtime.Object{&d.account, &d.Deployment, &d.budget}
		if mode == "operate" {
			documents = []runtime.Object{&d.account, &d.role, &d.binding, &d.Deployment, &d.budget}
		}
		readStrictly(t, mode+".yaml", add.AddToScheme, documents...)
		d.workload = workload{&d.Spec.Template}
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

// TestTwoOfEachModeThatLeads: on different nodes, next to the DaemonSet, with the same restrictions.
func TestTwoOfEachModeThatLeads(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	ports := map[int32]string{m.checkProbes(t): "the DaemonSet"}
	for mode, d := range readDeployments(t) {
		w := d.workload
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
		want(t, "account", d.Namespace+"/"+w.pod().ServiceAccountName, d.account.Namespace+"/"+d.account.Name)
		want(t, "token of the account", new(false), d.account.AutomountServiceAccountToken)
		want(t, "token", new(mode == "operate"), w.pod().AutomountServiceAccountToken)
		want(t, "image", m.container().Image, w.container().Image)
		want(t, "containers", 1, len(w.pod().Containers)+len(w.pod().InitContainers))
		want(t, "network", true, w.pod().HostNetwork)
		want(t, "DNS", corev1.DNSClusterFirstWithHostNet, w.pod().DNSPolicy)
		want(t, "service links", new(false), w.pod().EnableServiceLinks)
		want(t, "time to end", m.pod().TerminationGracePeriodSeconds, w.pod().TerminationGracePeriodSeconds)
		w.checkPrivileges(t)
		w.checkMemory(t)
		d.checkBudget(t)
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

// checkBudget: a drain takes one of the two at a time, and does not wait for one that is not ready.
func (d *deployment) checkBudget(t *testing.T) {
	t.Helper()
	want(t, "kind", metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, d.budget.TypeMeta)
	want(t, "name", d.Namespace+"/"+d.Name, d.budget.Namespace+"/"+d.budget.Name)
	want(t, "budget", policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: new(intstr.FromInt32(1)), Selector: d.Spec.Selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
	}, d.budget.Spec)
}

// readUsersJob reads deploy/etcd-users.yaml.
func readUsersJob(t *testing.T) (corev1.ServiceAccount, batchv1.Job) {
	t.Helper()
	var account corev1.ServiceAccount
	var job batchv1.Job
	add := runtime.NewSchemeBuilder(corev1.AddToScheme, batchv1.AddToScheme)
	readStrictly(t, "etcd-users.yaml", add.AddToScheme, &account, &job)
	return account, job
}

// TestTheJobThatMakesTheUsers: it runs once, asks Kubernetes for nothing, and is as
// harmless as the others beside what it has of etcd.
func TestTheJobThatMakesTheUsers(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	account, job := readUsersJob(t)
	w := workload{&job.Spec.Template}
	want(t, "kind", metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, job.TypeMeta)
	want(t, "namespaces", m.daemons.Namespace+" "+m.daemons.Namespace, account.Namespace+" "+job.Namespace)
	want(t, "account", account.Name, w.pod().ServiceAccountName)
	want(t, "tokens", []*bool{new(false), new(false)}, []*bool{account.AutomountServiceAccountToken, w.pod().AutomountServiceAccountToken})
	want(t, "again", corev1.RestartPolicyNever, w.pod().RestartPolicy) // a failed pod keeps its log
	want(t, "image", m.container().Image, w.container().Image)
	want(t, "arguments", []string{"users", "ensure", "--kvstore-opt=etcd.config=/var/lib/etcd-config/etcd.config"}, w.container().Args)
	want(t, "containers", 1, len(w.pod().Containers)+len(w.pod().InitContainers))
	want(t, "network", true, w.pod().HostNetwork)
	want(t, "DNS", corev1.DNSClusterFirstWithHostNet, w.pod().DNSPolicy)
	want(t, "service links", new(false), w.pod().EnableServiceLinks)
	w.checkPrivileges(t)
}

// TestEachHasItsOwnRights: no two workloads share an account or a certificate for the
// own etcd, and nothing that keeps running has root's.
func TestEachHasItsOwnRights(t *testing.T) {
	t.Parallel()
	account, job := readUsersJob(t)
	all, member := readDeployments(t), readMember(t)
	agent := readManifest(t)
	accounts := []string{agent.account.Name, all["operate"].account.Name, all["mirror"].account.Name, account.Name}
	want(t, "accounts", []string{"mesh-agent", "mesh-agent-operate", "mesh-agent-mirror", "mesh-agent-etcd-users"}, accounts)
	want(t, "account that the member patch changes", "", member.pod().ServiceAccountName)
	member.checkEtcdSecret(t, "node", true)
	all["operate"].checkEtcdSecret(t, "operator", true)
	all["mirror"].checkEtcdSecret(t, "mirror", true)
	workload{&job.Spec.Template}.checkEtcdSecret(t, "root", false)
	for _, v := range agent.pod().Volumes {
		if v.Secret != nil || v.ConfigMap != nil {
			t.Errorf("an agent that is no member has %s", v.Name)
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
		w := d.workload
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
}

// checkEtcdSecret wants the certificate of one user of etcd, and no other Secret that
// is not part of a mesh directory.
func (w workload) checkEtcdSecret(t *testing.T, user string, optional bool) {
	t.Helper()
	secrets := w.at("/var/lib/etcd-secrets").Secret
	if secrets == nil {
		t.Fatal("there are no certificates")
	}
	of := &corev1.SecretVolumeSource{
		SecretName: "mesh-agent-etcd-" + user, DefaultMode: new(int32(0o400)),
		Items: []corev1.KeyToPath{{Key: "tls.crt", Path: "etcd-client.crt"}, {Key: "tls.key", Path: "etcd-client.key"}, {Key: "ca.crt", Path: "etcd-client-ca.crt"}},
	}
	if optional {
		of.Optional = new(true)
	}
	want(t, "certificates", of, secrets)
	for _, v := range w.pod().Volumes {
		if v.Secret != nil && v.Secret != secrets {
			t.Errorf("it also has the Secret %s", v.Secret.SecretName)
		}
	}
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
