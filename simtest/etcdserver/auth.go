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
	// Password is empty for a user that is identified by its certificate only.
	Password string
	// Role lists the ranges that the user may read, or also write.
	Role []Range
}

// RemoteReader returns the ranges that a reader from another cluster may read in the cluster of that name (spec wire.md
// §0).
func RemoteReader(cluster string) []Range {
	return []Range{
		Prefix("cilium/.heartbeat"),
		Prefix("cilium/state/"),
		{Key: "cilium/cluster-config/" + cluster},
		Prefix("cilium/synced/" + cluster + "/"),
	}
}

// LocalReader returns the ranges that a reader of the cached copies of all clusters may read.
func LocalReader() []Range {
	return []Range{
		Prefix("cilium/.heartbeat"),
		Prefix("cilium/cache/"),
		Prefix("cilium/cluster-config/"),
		Prefix("cilium/synced/"),
	}
}

// EnableAuth creates the users, and root with the given password, and enables authentication. The client needs all
// rights.
func EnableAuth(ctx context.Context, c *clientv3.Client, rootPassword string, users ...User) error {
	if rootPassword == "" {
		return errors.New("enable authentication: the root password is empty")
	}
	for _, u := range append([]User{{Name: "root", Password: rootPassword}}, users...) {
		if err := add(ctx, c, u); err != nil {
			return fmt.Errorf("add user %s with its role: %w", u.Name, err)
		}
	}
	if _, err := c.AuthEnable(ctx); err != nil {
		return fmt.Errorf("enable authentication: %w", err)
	}
	return nil
}

// add adds a user with its role.
func add(ctx context.Context, c *clientv3.Client, u User) error {
	if _, err := c.RoleAdd(ctx, u.Name); err != nil {
		return err
	}
	for _, r := range u.Role {
		perm := clientv3.PermissionType(clientv3.PermRead)
		if r.Write {
			perm = clientv3.PermissionType(clientv3.PermReadWrite)
		}
		if _, err := c.RoleGrantPermission(ctx, u.Name, r.Key, r.End, perm); err != nil {
			return fmt.Errorf("grant %q: %w", r.Key, err)
		}
	}
	if _, err := c.UserAddWithOptions(ctx, u.Name, u.Password, &clientv3.UserAddOptions{NoPassword: u.Password == ""}); err != nil {
		return err
	}
	_, err := c.UserGrantRole(ctx, u.Name, u.Name)
	return err
}
