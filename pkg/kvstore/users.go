package kvstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// EnsureUser makes sure that a user exists who has these roles and no others. A
// user that is created has no password: it is known by the common name of its
// client certificate (spec wire.md, 0). One that exists keeps its password. The
// roles must exist. It takes several requests, and may be repeated; the rights of
// etcd's root are needed.
func (e *Etcd) EnsureUser(ctx context.Context, name string, roles []string) error {
	return e.administer(ctx, "ensure user", name, func(ctx context.Context) error {
		has, err := e.rolesOf(ctx, name)
		if err != nil {
			return err
		}
		for _, role := range roles {
			if slices.Contains(has, role) {
				continue
			}
			resp, err := e.client.UserGrantRole(ctx, name, role)
			if err := e.answered(resp, err); err != nil {
				return fmt.Errorf("grant role %q: %w", role, err)
			}
		}
		for _, role := range has {
			if slices.Contains(roles, role) {
				continue
			}
			resp, err := e.client.UserRevokeRole(ctx, name, role)
			if err := e.answered(resp, err); err != nil && !errors.Is(err, rpctypes.ErrRoleNotGranted) {
				return fmt.Errorf("revoke role %q: %w", role, err)
			}
		}
		return nil
	})
}

// rolesOf returns the roles of a user, who is created when there is none.
func (e *Etcd) rolesOf(ctx context.Context, name string) ([]string, error) {
	resp, err := e.client.UserGet(ctx, name)
	if err == nil {
		return resp.Roles, e.check(resp.Header)
	}
	if !errors.Is(err, rpctypes.ErrUserNotFound) {
		return nil, err
	}
	added, err := e.client.UserAddWithOptions(ctx, name, "", &clientv3.UserAddOptions{NoPassword: true})
	if err := e.answered(added, err); err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return nil, nil
}

// RemoveUser makes sure that a user does not exist. The rights of etcd's root are
// needed.
func (e *Etcd) RemoveUser(ctx context.Context, name string) error {
	return e.administer(ctx, "remove user", name, func(ctx context.Context) error {
		resp, err := e.client.UserDelete(ctx, name)
		if errors.Is(err, rpctypes.ErrUserNotFound) {
			return nil
		}
		return e.answered(resp, err)
	})
}

// administer does something about a user, within the limits and a deadline. Names
// of users are no keys: the figures have them under no scope.
func (e *Etcd) administer(ctx context.Context, op, name string, f func(context.Context) error) error {
	if err := e.admit(ctx, op, name); err != nil {
		return err
	}
	took, err := e.call(ctx, op, name, e.opts.Timings.Write, f)
	e.record(op, "", took, err)
	return err
}

// answered checks an answer about users.
func (e *Etcd) answered(resp interface{ GetHeader() *pb.ResponseHeader }, err error) error {
	if err != nil {
		return err
	}
	return e.check(resp.GetHeader())
}
