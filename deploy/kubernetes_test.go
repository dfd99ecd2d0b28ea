package deploy

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheRoleIsTheLeast: that it suffices is seen on a real API server
// (test/kubernetes).
func TestTheRoleIsTheLeast(t *testing.T) {
	t.Parallel()
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	readStrictly(t, "kubernetes.yaml", rbacv1.AddToScheme, &role, &binding)
	want(t, "kind", metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, role.TypeMeta)
	want(t, "kind", metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, binding.TypeMeta)

	allowed := map[string]string{}
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
	read := "get list watch"
	want(t, "allowed", map[string]string{
		"services.": read, "nodes.": read, "pods.": read, "namespaces.": read,
		"endpointslices.discovery.k8s.io":      read,
		"serviceexports.multicluster.x-k8s.io": read,
		"ciliumnodes.cilium.io":                read, "ciliumendpoints.cilium.io": read, "ciliumidentities.cilium.io": read,
	}, allowed)

	m := readManifest(t)
	want(t, "role", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}, binding.RoleRef)
	want(t, "whose", []rbacv1.Subject{{Kind: m.account.Kind, Name: m.account.Name, Namespace: m.account.Namespace}}, binding.Subjects)
}
