package etcd

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// EnsureUser ensures that a user exists that has these roles and no others. A created user has
// no password: etcd identifies it by the common name of its client certificate (spec
// wire.md §0). The error is [kvstore.ErrRoleNotFound] when a role does not exist, and
// [kvstore.ErrUserNotFound] when another client removes the user meanwhile. It needs several
// requests and the rights of etcd's root, and may be repeated.
func (e *Session) EnsureUser(ctx context.Context, name string, roles []string) error {
	return e.administer(ctx, "ensure user", name, func(ctx context.Context) error {
		added, err := e.auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: name, Options: &authpb.UserAddOptions{NoPassword: true}})
		if err := e.answered(added, err, rpctypes.ErrGRPCUserAlreadyExist); err != nil {
			return fmt.Errorf("add the user: %w", err)
		}
		user, err := e.auth.UserGet(ctx, &pb.AuthUserGetRequest{Name: name})
		if err := e.answered(user, err, nil); err != nil {
			return fmt.Errorf("read the user's roles: %w", err)
		}
		return e.setRoles(ctx, name, user.Roles, roles)
	})
}

func (e *Session) setRoles(ctx context.Context, name string, has, wanted []string) error {
	same := func(a, b string) bool { return a == b }
	for _, role := range without(wanted, has, same) {
		resp, err := e.auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: name, Role: role})
		if err := e.answered(resp, err, nil); err != nil {
			return fmt.Errorf("grant the role %q: %w", role, err)
		}
	}
	for _, role := range without(has, wanted, same) {
		resp, err := e.auth.UserRevokeRole(ctx, &pb.AuthUserRevokeRoleRequest{Name: name, Role: role})
		if err := e.answered(resp, err, rpctypes.ErrGRPCRoleNotGranted); err != nil {
			return fmt.Errorf("revoke the role %q: %w", role, err)
		}
	}
	return nil
}

// RemoveUser ensures that a user does not exist. It needs the rights of etcd's root.
func (e *Session) RemoveUser(ctx context.Context, name string) error {
	return e.administer(ctx, "remove user", name, func(ctx context.Context) error {
		resp, err := e.auth.UserDelete(ctx, &pb.AuthUserDeleteRequest{Name: name})
		return e.answered(resp, err, rpctypes.ErrGRPCUserNotFound)
	})
}

// administer does an operation on users or roles, under the limits and a deadline. It has no scope
// in metrics, because names of users are not keys.
func (e *Session) administer(ctx context.Context, op, name string, f func(context.Context) error) error {
	if err := e.admit(ctx, op, ""); err != nil {
		return err
	}
	took, err := e.call(ctx, op, name, e.opts.Timings.Write, f)
	e.record(op, "", took, err)
	return err
}

// answered checks an answer about users. It treats the error fine as success.
func (e *Session) answered(resp interface{ GetHeader() *pb.ResponseHeader }, err, fine error) error {
	switch {
	case err == nil:
		return e.check(resp.GetHeader())
	case fine != nil && message(err) == message(fine):
		return nil
	default:
		return fromRPC(err)
	}
}

// Access is the right to read a range of keys, or to read and write it.
type Access struct {
	// Prefix is the prefix of the keys. With Whole it is the only key; with Until it is
	// the first key of the range.
	Prefix string
	Whole  bool
	// Until is the first key after the range; empty: Prefix or Whole defines the range.
	Until string
	Write bool
}

// End returns the first key after the range; empty when the range is one key.
func (a Access) End() string {
	switch {
	case a.Whole:
		return ""
	case a.Until != "":
		return a.Until
	}
	return clientv3.GetPrefixRangeEnd(a.Prefix)
}

func (a Access) permission() *authpb.Permission {
	p := &authpb.Permission{Key: []byte(a.Prefix), PermType: authpb.Permission_READ}
	if a.Write {
		p.PermType = authpb.Permission_READWRITE
	}
	if end := a.End(); end != "" {
		p.RangeEnd = []byte(end)
	}
	return p
}

// EnsureRole ensures that a role exists that has these rights and no others. It revokes old rights
// before it grants new ones: for a moment, users of the role may lack rights, but they never have
// too many. It needs several requests and the rights of etcd's root, and may be repeated.
func (e *Session) EnsureRole(ctx context.Context, name string, rights []Access) error {
	return e.administer(ctx, "ensure role", name, func(ctx context.Context) error {
		added, err := e.auth.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: name})
		if err := e.answered(added, err, rpctypes.ErrGRPCRoleAlreadyExist); err != nil {
			return fmt.Errorf("add the role: %w", err)
		}
		role, err := e.auth.RoleGet(ctx, &pb.AuthRoleGetRequest{Role: name})
		if err := e.answered(role, err, nil); err != nil {
			return fmt.Errorf("read the role's rights: %w", err)
		}
		return e.setRights(ctx, name, role.Perm, converted(rights, Access.permission))
	})
}

func (e *Session) setRights(ctx context.Context, name string, has, wanted []*authpb.Permission) error {
	for _, p := range without(has, wanted, samePermission) {
		resp, err := e.auth.RoleRevokePermission(ctx, &pb.AuthRoleRevokePermissionRequest{Role: name, Key: p.Key, RangeEnd: p.RangeEnd})
		if err := e.answered(resp, err, rpctypes.ErrGRPCPermissionNotGranted); err != nil {
			return fmt.Errorf("revoke the right to %q: %w", p.Key, err)
		}
	}
	for _, p := range without(wanted, has, samePermission) {
		resp, err := e.auth.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{Name: name, Perm: p})
		if err := e.answered(resp, err, nil); err != nil {
			return fmt.Errorf("grant the right to %q: %w", p.Key, err)
		}
	}
	return nil
}

func samePermission(a, b *authpb.Permission) bool {
	return a.PermType == b.PermType && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.RangeEnd, b.RangeEnd)
}

// without returns the elements of list that are not in others.
func without[T any](list, others []T, same func(a, b T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(a T) bool {
		return slices.ContainsFunc(others, func(b T) bool { return same(a, b) })
	})
}

// EnableAuth enables authentication, if it is disabled. The user "root" with the role "root" must
// exist. From then on etcd identifies each client by its user name and password or by the common name
// of its certificate. This also applies to this session: it needs the role "root" for further administration.
func (e *Session) EnableAuth(ctx context.Context) error {
	return e.administer(ctx, "enable authentication", "", func(ctx context.Context) error {
		status, err := e.auth.AuthStatus(ctx, &pb.AuthStatusRequest{})
		if err := e.answered(status, err, nil); err != nil {
			return err
		}
		if status.Enabled {
			return nil
		}
		resp, err := e.auth.AuthEnable(ctx, &pb.AuthEnableRequest{})
		return e.answered(resp, err, nil)
	})
}

// Administer calls f with the current session, for operations on users and roles.
func Administer(ctx context.Context, d *kvstore.Durable, f func(context.Context, *Session) error) error {
	return d.Do(ctx, "administer", func(s kvstore.Session) error {
		e, is := s.(*Session)
		if !is {
			return hint.Failed("administer", "", fmt.Errorf("a session of %T has no users", s))
		}
		return f(ctx, e)
	})
}
