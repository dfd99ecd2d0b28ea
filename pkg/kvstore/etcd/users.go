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

// EnsureUser makes sure that a user exists who has these roles and no others. A user that is
// created has no password: it is known by the common name of its client certificate (spec
// wire.md §0). The error is [kvstore.ErrRoleNotFound] when a role does not exist, and
// [kvstore.ErrUserNotFound] when somebody else removes the user meanwhile. It takes several
// requests, and may be repeated; the rights of etcd's root are needed.
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

// RemoveUser makes sure that a user does not exist. The rights of etcd's root are needed.
func (e *Session) RemoveUser(ctx context.Context, name string) error {
	return e.administer(ctx, "remove user", name, func(ctx context.Context) error {
		resp, err := e.auth.UserDelete(ctx, &pb.AuthUserDeleteRequest{Name: name})
		return e.answered(resp, err, rpctypes.ErrGRPCUserNotFound)
	})
}

// administer does something about a user, within the limits and a deadline. Metrics have
// users under no scope: their names are no keys.
func (e *Session) administer(ctx context.Context, op, name string, f func(context.Context) error) error {
	if err := e.admit(ctx, op, ""); err != nil {
		return err
	}
	took, err := e.call(ctx, op, name, e.opts.Timings.Write, f)
	e.record(op, "", took, err)
	return err
}

// answered checks an answer about users. The error fine is as good as success.
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
	// Prefix is what the keys begin with; or the one key that it is when Whole; or
	// the first key of the range when there is an Until.
	Prefix string
	Whole  bool
	// Until is the first key after the range; empty: the Prefix says where it ends.
	Until string
	Write bool
}

// End is the first key after the range; empty when the range is one key.
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

// EnsureRole makes sure that a role exists that has these rights and no others.
// Its users may lose for a moment what it gains, never gain what it loses. It takes
// several requests, and may be repeated; the rights of etcd's root are needed.
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

// without is what is in the list and not in others.
func without[T any](list, others []T, same func(a, b T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(a T) bool {
		return slices.ContainsFunc(others, func(b T) bool { return same(a, b) })
	})
}

// EnableAuth turns authentication on, if it is not. The user "root" with the role of that name must
// exist. From then on a client is who its certificate's common name says, or its user name and
// password, also this one: it must be root, or have root's role, to do anything more.
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

// Administer does something about users and roles in the present session.
func Administer(ctx context.Context, d *kvstore.Durable, f func(context.Context, *Session) error) error {
	return d.Do(ctx, "administer", func(s kvstore.Session) error {
		e, is := s.(*Session)
		if !is {
			return hint.Failed("administer", "", fmt.Errorf("a session of %T has no users", s))
		}
		return f(ctx, e)
	})
}
