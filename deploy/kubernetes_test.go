package deploy

import (
	"strings"
	"testing"

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
		"ciliumnodes.cilium.io", "ciliumendpoints.cilium.io", "ciliumidentities.cilium.io")
	operate := readDeployments(t)["operate"]
	checkRole(t, operate.role, operate.binding, operate.account,
		"services.", "namespaces.", "endpointslices.discovery.k8s.io", "serviceexports.multicluster.x-k8s.io", "ciliumidentities.cilium.io",
		"ciliumnodes.cilium.io", "ciliumendpoints.cilium.io")
}

// TestTheRightsToKeepIdentities: of agents and operators, beside what they may read
// anyway, and of nobody else.
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
