package etcdserver

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Range is a range of keys, [Key, End); a single key when End is empty.
type Range struct {
	Key, End string
	Write    bool
}

// Prefix is the range of all keys that begin with p.
func Prefix(p string) Range { return Range{Key: p, End: clientv3.GetPrefixRangeEnd(p)} }

// User is an etcd user with a role of its own.
type User struct {
	Name string
	// Password is empty for a user that is known by its certificate alone.
	Password string
	// Role lists what the user may read, or write too.
	Role []Range
}

// RemoteReader is what a reader from another cluster may read of the cluster of
// that name (spec wire.md §0).
func RemoteReader(cluster string) []Range {
	return []Range{
		Prefix("cilium/.heartbeat"),
		Prefix("cilium/state/"),
		{Key: "cilium/cluster-config/" + cluster},
		Prefix("cilium/synced/" + cluster + "/"),
	}
}

// LocalReader is what a reader of the cached copies of all clusters may read.
func LocalReader() []Range {
	return []Range{
		Prefix("cilium/.heartbeat"),
		Prefix("cilium/cache/"),
		Prefix("cilium/cluster-config/"),
		Prefix("cilium/synced/"),
	}
}

// EnableAuth creates the users, and root with the given password, and switches
// authentication on. The client is any that may still do everything.
func EnableAuth(ctx context.Context, c *clientv3.Client, rootPassword string, users ...User) error {
	if rootPassword == "" {
		return errors.New("enable authentication: the root password is empty")
	}
	if _, err := c.RoleAdd(ctx, "root"); err != nil {
		return fmt.Errorf("add role root: %w", err)
	}
	if err := addUser(ctx, c, User{Name: "root", Password: rootPassword}, "root"); err != nil {
		return err
	}
	for _, u := range users {
		if err := addRole(ctx, c, u); err != nil {
			return err
		}
		if err := addUser(ctx, c, u, u.Name); err != nil {
			return err
		}
	}
	if _, err := c.AuthEnable(ctx); err != nil {
		return fmt.Errorf("enable authentication: %w", err)
	}
	return nil
}

func addRole(ctx context.Context, c *clientv3.Client, u User) error {
	if _, err := c.RoleAdd(ctx, u.Name); err != nil {
		return fmt.Errorf("add role %s: %w", u.Name, err)
	}
	for _, r := range u.Role {
		perm := clientv3.PermissionType(clientv3.PermRead)
		if r.Write {
			perm = clientv3.PermissionType(clientv3.PermReadWrite)
		}
		if _, err := c.RoleGrantPermission(ctx, u.Name, r.Key, r.End, perm); err != nil {
			return fmt.Errorf("grant %q to role %s: %w", r.Key, u.Name, err)
		}
	}
	return nil
}

func addUser(ctx context.Context, c *clientv3.Client, u User, role string) error {
	opts := &clientv3.UserAddOptions{NoPassword: u.Password == ""}
	if _, err := c.UserAddWithOptions(ctx, u.Name, u.Password, opts); err != nil {
		return fmt.Errorf("add user %s: %w", u.Name, err)
	}
	if _, err := c.UserGrantRole(ctx, u.Name, role); err != nil {
		return fmt.Errorf("give role %s to user %s: %w", role, u.Name, err)
	}
	return nil
}
