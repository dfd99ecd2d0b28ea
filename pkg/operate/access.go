package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// User is a user of etcd. It has no password: etcd takes the user from the common name
// of the client certificate.
type User struct {
	Name string `json:"name"`
	Role string `json:"role"`
}

// ReadUsers reads further users from a YAML file, a list under "users" with the
// name and the role of each. An entry for the cluster itself is skipped: all
// clusters of a mesh may share one file (wire.md §0).
func ReadUsers(file, cluster string) ([]User, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var contents struct {
		Users []User `json:"users"`
	}
	if err := yaml.UnmarshalStrict(text, &contents); err != nil {
		return nil, fmt.Errorf("%s: %w; it holds a list such as: users: [{name: remote-east, role: remote}]", file, err)
	}
	var users []User
	var errs []error
	roles := make(map[string]string)
	for _, u := range Users(cluster) {
		roles[u.Name] = u.Role
	}
	for i, u := range contents.Users {
		switch {
		case u.Name == "":
			errs = append(errs, fmt.Errorf("%s: user %d has no name", file, i+1))
		case !slices.Contains(Roles(), u.Role):
			errs = append(errs, fmt.Errorf("%s: user %q has the role %q; there are %s", file, u.Name, u.Role, strings.Join(Roles(), ", ")))
		case roles[u.Name] != "" && roles[u.Name] != u.Role:
			errs = append(errs, fmt.Errorf("%s: user %q has the roles %s and %s: each user has one, and those of 'mesh-agent users show' are given", file, u.Name, roles[u.Name], u.Role))
		case u.Name != cluster:
			roles[u.Name] = u.Role
			users = append(users, u)
		}
	}
	return users, errors.Join(errs...)
}

// CheckOwner tells whether an etcd is that of the cluster: of those that have written
// their configuration there themselves, and not a mirror for them, it must be one,
// unless there is none.
func CheckOwner(ctx context.Context, e kvstore.Client, cluster string) error {
	var others []string
	own := false
	_, err := e.List(ctx, wire.ClusterConfigPrefix+"/", func(p kvstore.Page) error {
		for _, kv := range p.Items {
			name := strings.TrimPrefix(string(kv.Key), wire.ClusterConfigPrefix+"/")
			if cfg, err := wire.DecodeClusterConfig(kv.Value); err == nil && cfg.Capabilities.Cached {
				continue
			}
			own = own || name == cluster
			others = append(others, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case own || len(others) == 0:
		return nil
	}
	return fmt.Errorf("this etcd holds the configuration of %s, and none of %s: nothing was changed; correct --cluster-name, or the etcd that --kvstore-opt names",
		strings.Join(others[:min(len(others), 5)], ", "), cluster)
}

// Provision gives etcd the roles of a mesh and these users, each of them with his
// role alone, and turns authentication on. Users that it does not name it leaves
// alone. self is who the client of this session is, "" if that is not known: one
// who would be shut out does not turn authentication on.
func Provision(ctx context.Context, e *etcd.Session, cluster, self string, users []User) error {
	roles := make(map[string]string, len(users))
	for _, u := range users {
		roles[u.Name] = u.Role
	}
	if roles[self] != RoleRoot {
		return fmt.Errorf("etcd is not given users: this client is %q for it, who would not be an administrator any more; "+
			"connect with the client certificate of root or admin-%s", self, cluster)
	}
	for _, role := range Roles() {
		if err := e.EnsureRole(ctx, role, Rights(role, cluster)); err != nil {
			return err
		}
	}
	for _, u := range users {
		if err := e.EnsureUser(ctx, u.Name, []string{u.Role}); err != nil {
			return err
		}
	}
	return e.EnableAuth(ctx)
}
