package deploy

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheRolesAreTheLeast: that they suffice is seen on a real API server (test/kubernetes).
func TestTheRolesAreTheLeast(t *testing.T) {
	t.Parallel()
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	readStrictly(t, "kubernetes.yaml", rbacv1.AddToScheme, &role, &binding)
	checkRole(t, role, binding, readManifest(t).account,
		"services.", "nodes.", "pods.", "namespaces.", "endpointslices.discovery.k8s.io", "serviceexports.multicluster.x-k8s.io",
		"ciliumnodes.cilium.io", "ciliumendpoints.cilium.io", "ciliumendpointslices.cilium.io", "ciliumidentities.cilium.io")
	operate := readDeployments(t)["operate"]
	checkRole(t, operate.role, operate.binding, operate.account,
		"services.", "namespaces.", "endpointslices.discovery.k8s.io", "serviceexports.multicluster.x-k8s.io", "ciliumidentities.cilium.io",
		"ciliumnodes.cilium.io", "ciliumendpoints.cilium.io", "ciliumendpointslices.cilium.io")
}

// TestTheRightsToKeepIdentities: agents and operators have them, in addition to
// their read rights, and no other process.
func TestTheRightsToKeepIdentities(t *testing.T) {
	t.Parallel()
	var agent, operate rbacv1.ClusterRole
	var ofAgent, ofOperate rbacv1.ClusterRoleBinding
	var leases rbacv1.Role
	var ofLeases rbacv1.RoleBinding
	readStrictly(t, "identities.yaml", rbacv1.AddToScheme, &agent, &ofAgent, &operate, &ofOperate, &leases, &ofLeases)
	rule := func(group, resource string, verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}}
	}
	want(t, "an agent's", rule("cilium.io", "ciliumidentities", "get", "list", "watch", "create", "update"), agent.Rules)
	want(t, "an operator's", rule("cilium.io", "ciliumidentities", "get", "list", "delete"), operate.Rules)
	want(t, "of Leases", rule("coordination.k8s.io", "leases", "get", "list", "create", "patch", "delete"), leases.Rules)
	account := func(a corev1.ServiceAccount) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Name: a.Name, Namespace: a.Namespace}
	}
	first, second := account(readManifest(t).account), account(readDeployments(t)["operate"].account)
	want(t, "who", []rbacv1.Subject{first}, ofAgent.Subjects)
	want(t, "who", []rbacv1.Subject{second}, ofOperate.Subjects)
	want(t, "who", []rbacv1.Subject{first, second}, ofLeases.Subjects)
	want(t, "roles", agent.Name+" "+operate.Name+" "+leases.Name, ofAgent.RoleRef.Name+" "+ofOperate.RoleRef.Name+" "+ofLeases.RoleRef.Name)
	want(t, "namespaces", first.Namespace+" "+first.Namespace, leases.Namespace+" "+ofLeases.Namespace)
}

// TestTheRightToWriteSlices: of operators alone, and of slices alone.
func TestTheRightToWriteSlices(t *testing.T) {
	t.Parallel()
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	readStrictly(t, "endpointslices.yaml", rbacv1.AddToScheme, &role, &binding)
	want(t, "rules", []rbacv1.PolicyRule{{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"create", "patch", "delete"}}}, role.Rules)
	want(t, "role", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}, binding.RoleRef)
	account := readDeployments(t)["operate"].account
	want(t, "who", []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects)
}

// TestTheRightToWriteImports: of operators alone, and of definitions those two alone, in a file of their own.
func TestTheRightToWriteImports(t *testing.T) {
	t.Parallel()
	checkRightToWrite(t, "mcs.yaml",
		"serviceimports: get list watch create patch delete", "serviceimports/status: patch", "serviceexports/status: patch",
		"services: create patch delete", "endpointslices: create patch delete")
	checkRightToWrite(t, "mcs-crds.yaml", "customresourcedefinitions: create",
		"customresourcedefinitions: get patch of serviceexports.multicluster.x-k8s.io of serviceimports.multicluster.x-k8s.io")
}

// checkRightToWrite wants the operators to have these rights in a file.
func checkRightToWrite(t *testing.T, file string, rights ...string) {
	t.Helper()
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	readStrictly(t, file, rbacv1.AddToScheme, &role, &binding)
	var verbs []string
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			verbs = append(verbs, resource+": "+strings.Join(rule.Verbs, " ")+strings.Join(append([]string{""}, rule.ResourceNames...), " of "))
		}
	}
	want(t, "rules in "+file, rights, verbs)
	want(t, "role", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}, binding.RoleRef)
	account := readDeployments(t)["operate"].account
	want(t, "who", []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects)
}

// TestOperatorsThatWriteReadTheMeshDirectory: the one that the agents have.
func TestOperatorsThatWriteReadTheMeshDirectory(t *testing.T) {
	t.Parallel()
	for file, variable := range map[string]string{"operate-endpointslices.yaml": "MESH_AGENT_ENDPOINT_SLICES", "operate-mcs.yaml": "MESH_AGENT_MCS_API"} {
		var patch appsv1.Deployment
		readStrictly(t, file, appsv1.AddToScheme, &patch)
		operate, agent := readDeployments(t)["operate"], readManifest(t)
		want(t, "what is changed", operate.Namespace+"/"+operate.Name, patch.Namespace+"/"+patch.Name)
		w := workload{&patch.Spec.Template}
		want(t, "container", operate.container().Name, w.container().Name)
		var names []string
		for _, v := range w.container().Env {
			names = append(names, v.Name)
		}
		want(t, "variables", []string{"MESH_AGENT_SERVICE_CIDR", "MESH_AGENT_POD_CIDR", "MESH_AGENT_CLUSTER_SIZE", variable}, names)
		want(t, "variable", "true", w.container().Env[len(names)-1].Value)
		want(t, "volume", agent.volume("clustermesh"), w.volume("clustermesh"))
		want(t, "mounts", []corev1.VolumeMount{{Name: "clustermesh", MountPath: "/var/lib/cilium/clustermesh", ReadOnly: true}}, w.container().VolumeMounts)
		want(t, "path of the agents", agent.flag(t, "clustermesh-config"), w.container().VolumeMounts[0].MountPath+"/")
	}
}

// TestAgentsAnswerDNSWhereTheServiceLeads: on the address of the node.
func TestAgentsAnswerDNSWhereTheServiceLeads(t *testing.T) {
	t.Parallel()
	var patch appsv1.DaemonSet
	var service corev1.Service
	readStrictly(t, "mesh-agent-dns.yaml", appsv1.AddToScheme, &patch)
	readStrictly(t, "dns.yaml", corev1.AddToScheme, &service)
	agent, w := readManifest(t), workload{&patch.Spec.Template}
	want(t, "what is changed", agent.daemons.Namespace+"/"+agent.daemons.Name, patch.Namespace+"/"+patch.Name)
	want(t, "container", agent.container().Name, w.container().Name)
	want(t, "pods of the service", agent.template.Labels, service.Spec.Selector)
	want(t, "whose pods", new(corev1.ServiceInternalTrafficPolicyLocal), service.Spec.InternalTrafficPolicy)
	want(t, "variables", []corev1.EnvVar{
		{Name: "NODE_ADDRESS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}},
		{Name: "MESH_AGENT_DNS", Value: "$(NODE_ADDRESS):5353"}, // replaced by what stands before it alone
	}, w.container().Env)
	for i, port := range service.Spec.Ports {
		at := w.container().Ports[i]
		want(t, "port", corev1.ContainerPort{Name: port.TargetPort.String(), ContainerPort: 5353, HostPort: 5353, Protocol: port.Protocol}, at)
		want(t, "port of the service", int32(53), port.Port)
	}
	want(t, "ports", []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP}, []corev1.Protocol{service.Spec.Ports[0].Protocol, service.Spec.Ports[1].Protocol})
}

// checkRole wants an account to be allowed to read these resources and nothing else.
func checkRole(t *testing.T, role rbacv1.ClusterRole, binding rbacv1.ClusterRoleBinding, account corev1.ServiceAccount, resources ...string) {
	t.Helper()
	want(t, "kind", metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, role.TypeMeta)
	want(t, "kind", metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, binding.TypeMeta)
	allowed, read := map[string]string{}, map[string]string{}
	for _, resource := range resources {
		read[resource] = "get list watch"
	}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				allowed[resource+"."+group] = strings.Join(rule.Verbs, " ")
			}
		}
		if len(rule.NonResourceURLs)+len(rule.ResourceNames) > 0 {
			t.Errorf("%+v", rule)
		}
	}
	want(t, "allowed", read, allowed)
	want(t, "role", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}, binding.RoleRef)
	want(t, "whose", []rbacv1.Subject{{Kind: account.Kind, Name: account.Name, Namespace: account.Namespace}}, binding.Subjects)
}
