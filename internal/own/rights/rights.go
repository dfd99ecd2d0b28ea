package rights

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

// The roles of etcd's users in a mesh. Cilium has root, remote and local, with the
// same rights (wire.md §0); there each writer is root.
const (
	RoleRoot     = "root"     // everything
	RoleNode     = "node"     // an agent: writes what a node says of itself
	RoleOperator = "operator" // writes what one process says of the cluster
	RoleMirror   = "mirror"   // writes the copies of other clusters
	RoleRemote   = "remote"   // reads what this cluster says of itself
	RoleLocal    = "local"    // reads the copies of other clusters
)

// Roles are all roles.
func Roles() []string {
	return []string{RoleRoot, RoleNode, RoleOperator, RoleMirror, RoleRemote, RoleLocal}
}

// Users are those of a cluster: its administrators, its writers, who read its state
// from other clusters, and who read the copies of other clusters in it.
func Users(cluster string) []User {
	return []User{
		{"root", RoleRoot},
		{"admin-" + cluster, RoleRoot},
		{"node", RoleNode},
		{"operator", RoleOperator},
		{"mirror", RoleMirror},
		{"remote", RoleRemote},
		{"local-" + cluster, RoleLocal},
	}
}

// Of returns the rights of a role in the kvstore of a cluster. Root has all of them
// without being given any.
//
// Every role reads the heartbeat, which is how a session is proved to be alive.
func Of(role, cluster string) []etcd.Access {
	switch role {
	case RoleNode:
		return append(readState(cluster), writeOwn(cluster, wire.Nodes, wire.IPs, wire.Identities)...)
	case RoleOperator:
		return operatorRights(cluster)
	case RoleMirror:
		return mirrorRights(cluster)
	case RoleRemote:
		return readState(cluster)
	case RoleLocal:
		return []etcd.Access{
			read(wire.HeartbeatKey),
			read(wire.CachePrefix + "/"),
			read(wire.ClusterConfigPrefix + "/"),
			read(wire.SyncedPrefix + "/"),
		}
	}
	return nil
}

// readState is what a cluster says of itself.
func readState(cluster string) []etcd.Access {
	return []etcd.Access{
		read(wire.HeartbeatKey),
		read(wire.StatePrefix + "/"),
		{Prefix: wire.ClusterConfigKey(cluster), Whole: true},
		read(wire.SyncedDir(cluster)),
	}
}

// writeOwn is the right to write resources of the cluster. Identities come with the
// references of nodes and the locks under which they are given.
func writeOwn(cluster string, resources ...wire.Resource) []etcd.Access {
	var rights []etcd.Access
	for _, r := range resources {
		rights = append(rights, write(r.Prefix(cluster, false)))
		if r == wire.Identities {
			rights = append(rights, write(wire.IdentityAllocation.References()), write(wire.IdentityAllocation.Locks()))
		}
	}
	return rights
}

// operatorRights: mappings of identities are written where Cilium keeps identities as objects of Kubernetes, and
// deleted when they are unused, under the locks of the allocators. References of nodes are never the operator's. It
// follows the configurations of all clusters, since its own is among them.
func operatorRights(cluster string) []etcd.Access {
	return append([]etcd.Access{
		{Prefix: wire.HeartbeatKey, Whole: true, Write: true},
		read(wire.HeartbeatKey),
		read(wire.StatePrefix + "/"),
		read(wire.ClusterConfigPrefix + "/"),
		{Prefix: wire.ClusterConfigKey(cluster), Whole: true, Write: true},
		write(wire.SyncedDir(cluster)),
		write(wire.OperatorLockPath + "/"),
		write(wire.Identities.Prefix(cluster, false)),
		write(wire.IdentityAllocation.Locks()),
	}, writeOwn(cluster, []wire.Resource{wire.Services, wire.EndpointSlices, wire.ServiceExports, wire.Nodes, wire.IPs}...)...)
}

// mirrorRights: the configuration and the canaries of every cluster but the own one. No remote can make the mirror
// write for its own cluster.
func mirrorRights(cluster string) []etcd.Access {
	rights := []etcd.Access{
		read(wire.HeartbeatKey),
		write(wire.CachePrefix + "/"),
		read(wire.ClusterConfigPrefix + "/"),
		read(wire.SyncedPrefix + "/"),
		write(wire.KVStoreMeshLockPath + "/"),
	}
	own := etcd.Access{Prefix: wire.ClusterConfigKey(cluster), Whole: true}
	rights = append(rights, writeAround(wire.ClusterConfigPrefix+"/", own.Prefix, own.Prefix+"\x00")...)
	canaries := read(wire.SyncedDir(cluster))
	return append(rights, writeAround(wire.SyncedPrefix+"/", canaries.Prefix, canaries.End())...)
}

// writeAround is the right to write what begins with a prefix, without the keys from
// one up to another.
func writeAround(prefix, from, to string) []etcd.Access {
	return []etcd.Access{
		{Prefix: prefix, Until: from, Write: true},
		{Prefix: to, Until: read(prefix).End(), Write: true},
	}
}

func read(prefix string) etcd.Access { return etcd.Access{Prefix: prefix} }

func write(prefix string) etcd.Access { return etcd.Access{Prefix: prefix, Write: true} }

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

// CheckOwner reports whether an etcd is that of the cluster: of those that have written their
// configuration there themselves, and not a mirror for them, it must be one, unless there is none.
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
		return fmt.Errorf("no users are created in etcd: this client is its user %q, which would no longer be an administrator; "+
			"connect with the client certificate of root or admin-%s", self, cluster)
	}
	for _, role := range Roles() {
		if err := e.EnsureRole(ctx, role, Of(role, cluster)); err != nil {
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
