package operate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The roles of etcd's users in a mesh (wire.md §0).
const (
	RoleRoot   = "root"   // everything
	RoleRemote = "remote" // reads what this cluster says of itself
	RoleLocal  = "local"  // reads the copies of other clusters
)

// User is a user of etcd. He has no password: he is who the common name of his
// client certificate says.
type User struct {
	Name string `json:"name"`
	Role string `json:"role"`
}

// Users are those of a cluster: its administrators, who read its state from other
// clusters, and who read the copies of other clusters in it.
func Users(cluster string) []User {
	return []User{
		{"root", RoleRoot},
		{"admin-" + cluster, RoleRoot},
		{"remote", RoleRemote},
		{"local-" + cluster, RoleLocal},
	}
}

// Rights are those of a role in the kvstore of a cluster. Root has all of them
// without being given any.
func Rights(role, cluster string) []kvstore.Access {
	heartbeat := kvstore.Access{Prefix: wire.HeartbeatKey}
	switch role {
	case RoleRemote:
		return []kvstore.Access{
			heartbeat,
			{Prefix: wire.StatePrefix + "/"},
			{Prefix: wire.ClusterConfigKey(cluster), Whole: true},
			{Prefix: wire.SyncedDir(cluster)},
		}
	case RoleLocal:
		return []kvstore.Access{
			heartbeat,
			{Prefix: wire.CachePrefix + "/"},
			{Prefix: wire.ClusterConfigPrefix + "/"},
			{Prefix: wire.SyncedPrefix + "/"},
		}
	}
	return nil
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
	for i, u := range contents.Users {
		switch {
		case u.Name == "":
			errs = append(errs, fmt.Errorf("%s: user %d has no name", file, i+1))
		case u.Role != RoleRoot && u.Role != RoleRemote && u.Role != RoleLocal:
			errs = append(errs, fmt.Errorf("%s: user %q has the role %q; there are %s, %s and %s", file, u.Name, u.Role, RoleRemote, RoleLocal, RoleRoot))
		case u.Name != cluster:
			users = append(users, u)
		}
	}
	return users, errors.Join(errs...)
}

// Provision gives etcd the roles of a mesh and these users, each of them with his
// role alone, and turns authentication on. Users that it does not name it leaves
// alone. self is who the client of this session is, "" if that is not known: one
// who would be shut out does not turn authentication on.
func Provision(ctx context.Context, e *kvstore.Etcd, cluster, self string, users []User) error {
	roles := make(map[string]string, len(users))
	for _, u := range users {
		roles[u.Name] = u.Role
	}
	if roles[self] != RoleRoot {
		return fmt.Errorf("etcd is not given users: this client is %q for it, who would not be an administrator any more; "+
			"connect with the client certificate of root or admin-%s", self, cluster)
	}
	for _, role := range []string{RoleRoot, RoleRemote, RoleLocal} {
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
