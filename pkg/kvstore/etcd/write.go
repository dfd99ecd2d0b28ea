package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// writerOptions are what the options say about writing.
func (o Options) writerOptions() kvstore.WriterOptions {
	w := kvstore.WriterOptions{
		LeaseTTL: o.LeaseTTL, LockTTL: o.LockTTL,
		LockWait: o.Timings.Lock, Write: o.Timings.Write, StaleLock: o.Timings.StaleLock,
		NoQuorumCheck: o.NoLockQuorumCheck, Leases: o.Leases, Hint: hint.Text, Log: o.Log,
	}
	if m := o.Metrics; m != nil {
		w.LeaseGauge, w.LockLeaseGauge, w.LockGauge = m.leasesOf("session"), m.leasesOf("lock"), m.locks
	}
	return w
}

// Transact implements [kvstore.Engine].
func (e *Session) Transact(ctx context.Context, t kvstore.Transaction) (kvstore.TxnResult, kvstore.Position, error) {
	var res kvstore.TxnResult
	var at kvstore.Position
	req := toPB(t.Txn)
	exchange := func(ctx context.Context) error {
		resp, reached, err := e.txn(ctx, req)
		if err != nil {
			return err
		}
		res, at = resultOf(req, resp), reached
		return t.Lost(res)
	}
	var took time.Duration
	var err error
	if t.Limited {
		if err := e.admit(ctx, t.Op, t.Key); err != nil {
			return kvstore.TxnResult{}, kvstore.Position{}, err
		}
		took, err = e.call(ctx, t.Op, t.Key, e.opts.Timings.Write, exchange)
	} else {
		took, err = e.within(ctx, t.Op, t.Key, e.opts.Timings.Write, exchange)
	}
	e.record(t.Op, t.Key, took, err)
	if err != nil {
		return kvstore.TxnResult{}, kvstore.Position{}, err
	}
	return res, at, nil
}

// txn makes a transaction and checks the answer as that of a linearizable read.
func (e *Session) txn(ctx context.Context, req *pb.TxnRequest) (*pb.TxnResponse, kvstore.Position, error) {
	before := e.highest.Load()
	resp, err := e.kv.Txn(ctx, req)
	if err != nil {
		return nil, kvstore.Position{}, err
	}
	if err := e.checkRevision(resp.GetHeader()); err != nil {
		return nil, kvstore.Position{}, err
	}
	rev := resp.Header.Revision
	if err := e.linearizable(before, rev); err != nil {
		return nil, kvstore.Position{}, err
	}
	if err := e.checked(checkTxn(req, resp, rev)); err != nil {
		return nil, kvstore.Position{}, err
	}
	return resp, kvstore.Position{ClusterID: e.pinned.Load(), Revision: rev}, nil
}

// WatchNow implements [kvstore.Engine].
func (e *Session) WatchNow(ctx context.Context, key string, after kvstore.Position) (kvstore.Stream, error) {
	st, err := e.openStream(ctx, key, after)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// Grant implements [kvstore.Lessor]. Leases wait for no limit.
func (e *Session) Grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error) {
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

// KeepAlive implements [kvstore.Lessor], with one stream for all leases.
func (e *Session) KeepAlive(ctx context.Context, ids []int64) (map[int64]bool, error) {
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

func (e *Session) keepOne(st pb.Lease_LeaseKeepAliveClient, id int64) (alive bool, err error) {
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

// Revoke implements [kvstore.Lessor]. It also serves a session that has been closed, but
// not one that found another etcd: that one never granted the lease.
func (e *Session) Revoke(ctx context.Context, id int64) error {
	if errors.Is(e.over(), kvstore.ErrServerChanged) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timings.Write)
	defer cancel()
	start := time.Now()
	_, err := e.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id})
	if err != nil {
		if err = fromRPC(err); errors.Is(err, kvstore.ErrLeaseNotFound) {
			err = nil
		} else {
			err = hint.Failed("revoke lease", "", fmt.Errorf("lease %x: %w", id, err))
		}
	}
	e.record("revoke lease", "", time.Since(start), err)
	return err
}
