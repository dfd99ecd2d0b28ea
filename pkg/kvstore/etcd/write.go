package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// writerOptions returns the options about writing.
func (o Options) writerOptions() kvstore.WriterOptions {
	w := kvstore.WriterOptions{
		LeaseTTL: o.LeaseTTL, LockTTL: o.LockTTL,
		LockWait: o.Timings.Lock, Write: o.Timings.Write, StaleLock: o.Timings.StaleLock,
		NoQuorumCheck: o.NoLockQuorumCheck, Leases: o.Leases, Hint: hint.Text, Log: o.Log,
	}
	if m := o.Metrics; m != nil {
		w.LeaseGauge, w.LockLeaseGauge, w.LockGauge = m.leases.WithLabelValues("session"), m.leases.WithLabelValues("lock"), m.locks
	}
	return w
}

// Transact implements [kvstore.Engine].
func (e *Session) Transact(ctx context.Context, t kvstore.Transaction) (res kvstore.TxnResult, at kvstore.Position, err error) {
	operate := e.unlimited
	if t.Limited {
		operate = e.operate
	}
	req := toPB(t.Txn)
	err = operate(ctx, t.Op, t.Key, e.opts.Timings.Write, func(ctx context.Context) error {
		before := e.highest.Load()
		resp, err := e.exchange(ctx, req)
		if err == nil {
			at, err = e.linearizable(before, resp.Header.Revision)
		}
		if err != nil {
			return err
		}
		res = resultOf(req, resp)
		return t.Lost(res)
	})
	if err != nil {
		return kvstore.TxnResult{}, kvstore.Position{}, err
	}
	return res, at, nil
}

// exchange makes a transaction and checks the shape of the answer.
func (e *Session) exchange(ctx context.Context, req *pb.TxnRequest) (*pb.TxnResponse, error) {
	resp, err := e.kv.Txn(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := e.checkRevision(resp.GetHeader()); err != nil {
		return nil, err
	}
	return resp, e.checked(checkTxn(req, resp, resp.Header.Revision))
}

// Grant implements [kvstore.Lessor]. Leases wait for no limit.
func (e *Session) Grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error) {
	err = e.unlimited(ctx, "grant lease", "", e.opts.Timings.Write, func(ctx context.Context) error {
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
	return id, lasts, err
}

// KeepAlive implements [kvstore.Lessor], with one stream for all leases.
func (e *Session) KeepAlive(ctx context.Context, ids []int64) (map[int64]bool, error) {
	alive := make(map[int64]bool)
	err := e.unlimited(ctx, "keep leases alive", "", e.opts.Timings.Write, func(ctx context.Context) error {
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
	return alive, err
}

func (e *Session) keepOne(st pb.Lease_LeaseKeepAliveClient, id int64) (alive bool, err error) {
	if err := st.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
		_, reason := st.Recv()
		return false, cmp.Or(reason, err) // Send returns only io.EOF
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

// Revoke implements [kvstore.Lessor], also for a closed session. If another etcd has replaced the
// server, there is nothing to revoke: it never granted the lease.
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

// toPB converts a transaction to etcd's form.
func toPB(t kvstore.Txn) *pb.TxnRequest {
	return &pb.TxnRequest{
		Compare: converted(t.If, conditionToPB), Success: converted(t.Then, opToPB), Failure: converted(t.Else, opToPB),
	}
}

// converted returns a list with each element converted; nil for an empty list.
func converted[From, To any](list []From, one func(From) To) []To {
	if len(list) == 0 {
		return nil
	}
	to := make([]To, len(list))
	for i := range list {
		to[i] = one(list[i])
	}
	return to
}

func conditionToPB(c kvstore.Condition) *pb.Compare {
	to := &pb.Compare{Key: []byte(c.Key)}
	switch c.Kind {
	case kvstore.ValueIs:
		to.Target, to.TargetUnion = pb.Compare_VALUE, &pb.Compare_Value{Value: c.Value}
	case kvstore.CreatedAt:
		to.Target, to.TargetUnion = pb.Compare_CREATE, &pb.Compare_CreateRevision{CreateRevision: c.Number}
	case kvstore.ChangedAt:
		to.Target, to.TargetUnion = pb.Compare_MOD, &pb.Compare_ModRevision{ModRevision: c.Number}
	case kvstore.LeaseIs:
		to.Target, to.TargetUnion = pb.Compare_LEASE, &pb.Compare_Lease{Lease: c.Number}
	case kvstore.Exists:
		to.Target, to.Result, to.TargetUnion = pb.Compare_CREATE, pb.Compare_GREATER, &pb.Compare_CreateRevision{}
	}
	return to
}

func opToPB(op kvstore.TxnOp) *pb.RequestOp {
	key := []byte(op.Key)
	switch op.Kind {
	case kvstore.OpPut:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: key, Value: op.Value, Lease: op.Lease},
		}}
	case kvstore.OpDelete:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: key, RangeEnd: []byte(op.End)},
		}}
	case kvstore.OpTxn:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: toPB(*op.Txn)}}
	default:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{
			Key: key, RangeEnd: []byte(op.End), KeysOnly: op.KeysOnly, MaxCreateRevision: op.MaxCreated,
		}}}
	}
}

// resultOf reads an answer that has been checked (checkTxn).
func resultOf(req *pb.TxnRequest, resp *pb.TxnResponse) kvstore.TxnResult {
	asked := req.Success
	if !resp.Succeeded {
		asked = req.Failure
	}
	res := kvstore.TxnResult{Succeeded: resp.Succeeded, Parts: make([]kvstore.PartResult, len(resp.Responses))}
	for i, op := range resp.Responses {
		res.Parts[i] = partOf(asked[i], op)
	}
	return res
}

func partOf(asked *pb.RequestOp, answer *pb.ResponseOp) kvstore.PartResult {
	switch r := asked.Request.(type) {
	case *pb.RequestOp_RequestPut:
		return kvstore.PartResult{Kind: kvstore.OpPut}
	case *pb.RequestOp_RequestDeleteRange:
		return kvstore.PartResult{Kind: kvstore.OpDelete, Deleted: answer.GetResponseDeleteRange().GetDeleted()}
	case *pb.RequestOp_RequestTxn:
		inner := resultOf(r.RequestTxn, answer.GetResponseTxn())
		return kvstore.PartResult{Kind: kvstore.OpTxn, Txn: &inner}
	default:
		found := func(kv *mvccpb.KeyValue) kvstore.Found {
			return kvstore.Found{KeyValue: fromPB(kv), Created: kv.CreateRevision}
		}
		return kvstore.PartResult{Kind: kvstore.OpRead, Found: converted(answer.GetResponseRange().GetKvs(), found)}
	}
}
