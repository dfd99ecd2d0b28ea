package deploy

import (
	"net"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// manifest is what deploy/mesh-agent.yaml holds.
type manifest struct {
	account corev1.ServiceAccount
	daemons appsv1.DaemonSet
	workload
}

// workload is what runs, by a DaemonSet or by a Deployment.
type workload struct{ template *corev1.PodTemplateSpec }

// readManifest reads deploy/mesh-agent.yaml.
func readManifest(t *testing.T) *manifest {
	t.Helper()
	m := new(manifest)
	add := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme)
	readStrictly(t, "mesh-agent.yaml", add.AddToScheme, &m.account, &m.daemons)
	m.workload = workload{&m.daemons.Spec.Template}
	return m
}

// readStrictly reads the documents of a manifest as the API server does when it is strict: a field
// that the API does not have, in this spelling, is an error, as is one that is there twice.
func readStrictly(t *testing.T, name string, add func(*runtime.Scheme) error, into ...runtime.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	check(t, add(scheme))
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := strings.Split(readFile(t, name), "\n---\n")
	if len(documents) != len(into) {
		t.Fatalf("%s has %d documents", name, len(documents))
	}
	for i, o := range into {
		if _, _, err := strict.Decode([]byte(documents[i]), nil, o); err != nil {
			t.Fatalf("%s, document %d: %v", name, i+1, err)
		}
	}
}

func (w workload) pod() *corev1.PodSpec             { return &w.template.Spec }
func (w workload) container() *corev1.Container     { return &w.pod().Containers[0] }
func (w workload) volume(name string) corev1.Volume { return find(w.pod().Volumes, volumeNamed(name)) }

func volumeNamed(name string) func(corev1.Volume) bool {
	return func(v corev1.Volume) bool { return v.Name == name }
}

// find returns the only one that is so, or nothing.
func find[T any](list []T, is func(T) bool) (found T) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		found = list[i]
	}
	return found
}

// flag is the value of a flag in the arguments.
func (w workload) flag(t *testing.T, name string) string {
	t.Helper()
	for _, arg := range w.container().Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	t.Fatalf("no --%s in %v", name, w.container().Args)
	return ""
}

func want[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTheObjectsBelongTogether(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	want(t, "kind", metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, m.account.TypeMeta)
	want(t, "kind", metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, m.daemons.TypeMeta)
	want(t, "namespace", "kube-system", m.account.Namespace)
	want(t, "namespace", m.account.Namespace, m.daemons.Namespace)
	want(t, "service account", m.account.Name, m.pod().ServiceAccountName)
	want(t, "labels", m.daemons.Spec.Selector.MatchLabels, m.daemons.Spec.Template.Labels)
	want(t, "token of the account", new(false), m.account.AutomountServiceAccountToken)
	want(t, "token of the pod", new(false), m.pod().AutomountServiceAccountToken)
	want(t, "containers", 1, len(m.pod().Containers)+len(m.pod().InitContainers))
	want(t, "update", appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString("10%")), MaxSurge: new(intstr.FromInt32(0))},
	}, m.daemons.Spec.UpdateStrategy)
}

func TestThePodIsOnEveryNodeAndInItsNetwork(t *testing.T) {
	t.Parallel()
	pod := readManifest(t).pod()
	want(t, "network", true, pod.HostNetwork)
	want(t, "DNS", corev1.DNSClusterFirstWithHostNet, pod.DNSPolicy)
	want(t, "priority", "system-node-critical", pod.PriorityClassName)
	want(t, "tolerations", []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, pod.Tolerations)
	want(t, "nodes", map[string]string{"kubernetes.io/os": "linux"}, pod.NodeSelector)
	want(t, "service links", new(false), pod.EnableServiceLinks)
	if grace := pod.TerminationGracePeriodSeconds; grace == nil || *grace <= 10 {
		t.Error("it is killed while it stops, which may take 10 s")
	}
}

func TestThePodHasNoPrivileges(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	m.checkPrivileges(t)
	m.checkMemory(t)
}

// checkPrivileges wants none.
func (w workload) checkPrivileges(t *testing.T) {
	t.Helper()
	pod := w.pod()
	want(t, "pod", &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}, pod.SecurityContext)
	want(t, "container", &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Privileged: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}, w.container().SecurityContext)
	if pod.HostPID || pod.HostIPC {
		t.Error("it sees the node's processes")
	}
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			t.Errorf("volume %s is a directory of the node", v.Name)
		}
	}
	r := w.container().Resources
	if r.Requests.Cpu().IsZero() || r.Requests.Memory().IsZero() || r.Limits.Memory().IsZero() || r.Limits.Memory().Cmp(*r.Requests.Memory()) < 0 {
		t.Errorf("resources: %+v", r)
	}
}

// TestVolumesAreWhereTheFlagsLook: each mounted path is used and each used path is mounted.
func TestVolumesAreWhereTheFlagsLook(t *testing.T) {
	t.Parallel()
	m := readManifest(t)
	mounts := m.container().VolumeMounts
	want(t, "mounts of volumes", len(m.pod().Volumes), len(mounts))
	at := map[string]corev1.VolumeMount{}
	for _, mount := range mounts {
		at[mount.MountPath] = mount
	}
	mesh := at[path.Clean(m.flag(t, "clustermesh-config"))]
	socket := at[path.Dir(m.flag(t, "socket"))]
	if m.volume(mesh.Name).Projected == nil || !mesh.ReadOnly {
		t.Errorf("the mesh directory is %+v", mesh)
	}
	if m.volume(socket.Name).EmptyDir == nil || socket.ReadOnly {
		t.Errorf("the socket's directory is %+v", socket)
	}
	// The names of wire.md §3.2.
	files := map[string][]string{}
	for _, source := range m.volume(mesh.Name).Projected.Sources {
		if source.Secret == nil || source.Secret.Optional == nil || !*source.Secret.Optional {
			t.Fatalf("%+v is not an optional Secret", source)
		}
		files[source.Secret.Name] = []string{}
		for _, item := range source.Secret.Items {
			files[source.Secret.Name] = append(files[source.Secret.Name], item.Key+" "+item.Path)
		}
	}
	want(t, "files", map[string][]string{
		"cilium-clustermesh":                {},
		"clustermesh-apiserver-remote-cert": {"tls.crt common-etcd-client.crt", "tls.key common-etcd-client.key", "ca.crt common-etcd-client-ca.crt"},
		"clustermesh-apiserver-local-cert":  {"tls.crt local-etcd-client.crt", "tls.key local-etcd-client.key", "ca.crt local-etcd-client-ca.crt"},
	}, files)
	want(t, "mode", new(int32(0o400)), m.volume(mesh.Name).Projected.DefaultMode)
}

// TestProbesAskWhereTheAgentListens: what the paths answer is seen in serveSecret.
func TestProbesAskWhereTheAgentListens(t *testing.T) {
	t.Parallel()
	readManifest(t).checkProbes(t)
}

// checkProbes returns the port that they ask, which is one of the node.
func (w workload) checkProbes(t *testing.T) int32 {
	t.Helper()
	host, text, err := net.SplitHostPort(w.flag(t, "listen"))
	check(t, err)
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Fatalf("it listens on %s: %v", host, err)
	}
	for where, probe := range map[string]*corev1.Probe{"/healthz": w.container().LivenessProbe, "/readyz": w.container().ReadinessProbe} {
		want(t, "probe", &corev1.HTTPGetAction{Host: host, Path: where, Port: intstr.FromInt32(int32(port))}, probe.HTTPGet)
	}
	want(t, "ports", []corev1.ContainerPort{{Name: "http", ContainerPort: int32(port), HostPort: int32(port), HostIP: host, Protocol: corev1.ProtocolTCP}}, w.container().Ports)
	return int32(port)
}

// checkFlags compares the arguments and the variables with what the program
// says of its flags; more are variables that not every workload has.
func (w workload) checkFlags(t *testing.T, command, help string, more ...string) {
	t.Helper()
	known := flagsOf(help)
	args := w.container().Args
	want(t, "command", command, args[0])
	for _, arg := range args[1:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !slices.Contains(known, name) {
			t.Errorf("%s is none of %v", arg, known)
		}
	}
	want(t, "variables", slices.Concat([]string{
		"MESH_AGENT_CLUSTER_NAME cilium-config/cluster-name",
		"MESH_AGENT_CLUSTER_ID cilium-config/cluster-id",
		"MESH_AGENT_MAX_CONNECTED_CLUSTERS cilium-config/max-connected-clusters?",
	}, more, []string{"MESH_AGENT_NODE_NAME spec.nodeName"}), w.variables(t, known))
}

// flagsOf are the flags in the help of a command.
func flagsOf(help string) (known []string) {
	for _, found := range regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(help, -1) {
		known = append(known, found[1])
	}
	return known
}

// memoryLimit is what Go's runtime is given.
const memoryLimit = "GOMEMLIMIT"

// checkMemory wants the runtime to know 90 % of the container's limit, so that the
// rest of the process has some room before the kernel ends it.
func (w workload) checkMemory(t *testing.T) {
	t.Helper()
	text := find(w.container().Env, func(v corev1.EnvVar) bool { return v.Name == memoryLimit }).Value
	mib, err := strconv.ParseInt(strings.TrimSuffix(text, "MiB"), 10, 64)
	if want := w.container().Resources.Limits.Memory().Value() * 9 / 10 >> 20; err != nil || mib != want {
		t.Errorf("%s is %q, want %dMiB, which is 90 %% of the limit", memoryLimit, text, want)
	}
}

// variables are those of the container, each with where its value comes from. They
// have to be those of flags, but for the one that checkMemory knows.
func (w workload) variables(t *testing.T, known []string) (all []string) {
	t.Helper()
	for _, v := range w.container().Env {
		if v.Name == memoryLimit {
			continue
		}
		name, ours := strings.CutPrefix(v.Name, "MESH_AGENT_")
		if flag := strings.ReplaceAll(strings.ToLower(name), "_", "-"); !ours || !slices.Contains(known, flag) {
			t.Errorf("%s is the variable of none of %v", v.Name, known)
		}
		all = append(all, strings.TrimSpace(v.Name+" "+v.Value+source(v.ValueFrom)))
	}
	return all
}

// source says where a variable's value comes from.
func source(from *corev1.EnvVarSource) string {
	switch {
	case from == nil:
		return ""
	case from.FieldRef != nil:
		return from.FieldRef.FieldPath
	case from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Optional != nil && *from.ConfigMapKeyRef.Optional:
		return path.Join(from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key) + "?"
	case from.ConfigMapKeyRef != nil:
		return path.Join(from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
	}
	return "elsewhere"
}

// checkUser: the pod's user is the image's, and none that has a name.
func (w workload) checkUser(t *testing.T, user string) {
	t.Helper()
	s := w.pod().SecurityContext
	want(t, "user", strconv.FormatInt(*s.RunAsUser, 10)+":"+strconv.FormatInt(*s.RunAsGroup, 10), user)
}

// TestTheReadmeShowsTheManifests: docs/install.md names each of them.
func TestTheReadmeShowsTheManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.yaml")
	check(t, err)
	for _, file := range files {
		if guide := readFile(t, filepath.Join(context, "docs", "install.md")); !strings.Contains(guide, "deploy/"+file) {
			t.Errorf("docs/install.md does not name deploy/%s", file)
		}
	}
}
