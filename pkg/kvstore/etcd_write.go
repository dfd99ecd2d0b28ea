package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// writeOptions are what the options say about writing.
func (o Options) writeOptions() writeOptions {
	return writeOptions{
		leaseTTL: cmp.Or(o.LeaseTTL, defaultLeaseTTL), lockTTL: cmp.Or(o.LockTTL, defaultLockTTL), timings: o.Timings,
		checkQuorum: !o.NoLockQuorumCheck, metrics: o.Metrics, log: o.Log,
	}
}

// transact implements server.
func (e *Etcd) transact(ctx context.Context, t transaction) (*pb.TxnResponse, Position, error) {
	var resp *pb.TxnResponse
	var at Position
	exchange := func(ctx context.Context) error {
		var err error
		if resp, at, err = e.txn(ctx, t.req); err != nil {
			return err
		}
		return t.lost(resp)
	}
	var took time.Duration
	var err error
	if t.limited {
		if err := e.admit(ctx, t.op, t.key); err != nil {
			return nil, Position{}, err
		}
		took, err = e.call(ctx, t.op, t.key, e.opts.Timings.Write, exchange)
	} else {
		took, err = e.within(ctx, t.op, t.key, e.opts.Timings.Write, exchange)
	}
	e.record(t.op, t.key, took, err)
	if err != nil {
		return nil, Position{}, err
	}
	return resp, at, nil
}

// txn makes a transaction and checks the answer as that of a linearizable read.
func (e *Etcd) txn(ctx context.Context, req *pb.TxnRequest) (*pb.TxnResponse, Position, error) {
	before := e.highest.Load()
	resp, err := e.kv.Txn(ctx, req)
	if err != nil {
		return nil, Position{}, err
	}
	if err := e.checkRevision(resp.GetHeader()); err != nil {
		return nil, Position{}, err
	}
	rev := resp.Header.Revision
	if err := e.linearizable(before, rev); err != nil {
		return nil, Position{}, err
	}
	if err := e.checked(checkTxn(req, resp, rev)); err != nil {
		return nil, Position{}, err
	}
	return resp, Position{e.pinned.Load(), rev}, nil
}

// openWatch implements server.
func (e *Etcd) openWatch(ctx context.Context, key string, after Position) (Stream, error) {
	st, err := e.openStream(ctx, key, after)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// grant implements lessor. Leases wait for no limit.
func (e *Etcd) grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error) {
	took, err := e.within(ctx, "grant lease", "", e.opts.Timings.Write, func(ctx context.Context) error {
		resp, err := e.lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(max(ttl, time.Second) / time.Second)})
		if err != nil {
			return err
		}
		if err := e.check(resp.GetHeader()); err != nil {
			return err
		}
		id, lasts = resp.GetID(), time.Duration(resp.GetTTL())*time.Second
		return e.checked(checkGrant(resp))
	})
	e.record("grant lease", "", took, err)
	return id, lasts, err
}

// keepAlive implements lessor, with one stream for all leases.
func (e *Etcd) keepAlive(ctx context.Context, ids []int64) (map[int64]bool, error) {
	alive := make(map[int64]bool)
	took, err := e.within(ctx, "keep leases alive", "", e.opts.Timings.Write, func(ctx context.Context) error {
		st, err := e.lease.LeaseKeepAlive(ctx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if alive[id], err = e.keepOne(st, id); err != nil {
				delete(alive, id)
				return err
			}
		}
		return nil
	})
	e.record("keep leases alive", "", took, err)
	return alive, err
}

func (e *Etcd) keepOne(st pb.Lease_LeaseKeepAliveClient, id int64) (alive bool, err error) {
	if err := st.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
		if _, rerr := st.Recv(); rerr != nil {
			err = rerr // Send says io.EOF; the reason is to be received
		}
		return false, err
	}
	resp, err := st.Recv()
	if err != nil {
		return false, err
	}
	if resp.GetID() != id {
		return false, fmt.Errorf("the server answered about lease %x, asked about %x", resp.GetID(), id)
	}
	return resp.GetTTL() > 0, e.check(resp.GetHeader())
}

// revoke implements lessor. It also serves a session that has been closed, but
// not one that found another etcd: that one never granted the lease.
func (e *Etcd) revoke(ctx context.Context, id int64) error {
	if errors.Is(e.over(), ErrServerChanged) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timings.Write)
	defer cancel()
	start := time.Now()
	_, err := e.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id})
	if isLeaseGone(err) {
		err = nil
	}
	if err != nil {
		err = &KeyError{"revoke lease", "", fmt.Errorf("lease %x: %w", id, fromRPC(err))}
	}
	e.record("revoke lease", "", time.Since(start), err)
	return err
}

// isLeaseGone tells that something was not done because its lease has ended.
func isLeaseGone(err error) bool {
	return err != nil && status.Convert(unwrapRPC(err)).Message() == message(rpctypes.ErrGRPCLeaseNotFound)
}
