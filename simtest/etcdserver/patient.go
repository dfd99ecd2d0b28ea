package etcdserver

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Patient makes a client send a write again that the server has given up, as it does after seven seconds on a machine
// without time for it. It does not repeat transactions with conditions: the first one may have been executed. The client is
// not in use yet.
func Patient(c *clientv3.Client) *clientv3.Client {
	c.KV = patient{c.KV}
	return c
}

type patient struct{ clientv3.KV }

func (p patient) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return again(ctx, func() (*clientv3.PutResponse, error) { return p.KV.Put(ctx, key, value, opts...) })
}

func (p patient) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return again(ctx, func() (*clientv3.DeleteResponse, error) { return p.KV.Delete(ctx, key, opts...) })
}

func (p patient) Txn(ctx context.Context) clientv3.Txn {
	return &patientTxn{Txn: p.KV.Txn(ctx), ctx: ctx}
}

type patientTxn struct {
	clientv3.Txn
	ctx         context.Context
	conditional bool
}

func (t *patientTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	t.Txn, t.conditional = t.Txn.If(conditions...), len(conditions) > 0
	return t
}

func (t *patientTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *patientTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *patientTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.conditional {
		return t.Txn.Commit()
	}
	return again(t.ctx, t.Txn.Commit)
}

// again repeats an operation while the server gives it up.
func again[R any](ctx context.Context, do func() (R, error)) (R, error) {
	for {
		r, err := do()
		if ctx.Err() != nil || !errors.Is(err, rpctypes.ErrTimeout) && !saysTimeout(err) {
			return r, err
		}
	}
}

// saysTimeout: a client without a connection returns the errors of the server itself.
func saysTimeout(err error) bool { return err != nil && err.Error() == rpctypes.ErrTimeout.Error() }
