package etcd

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/authpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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

// RemoveUser makes sure that a user does not exist. The rights of etcd's root are
// needed.
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
