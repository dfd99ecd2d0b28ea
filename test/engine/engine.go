// Package engine is an engine of a kvstore, made outside of the project's module: a part
// of another one, whose keys all begin with a prefix that its users do not see. Its test
// passes the conformance suite.
package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Part is a session with the part of an engine below a prefix. Operations without keys go to the
// engine.
type Part struct {
	*kvstore.EngineWriter
	kvstore.Engine

	prefix string
}

var (
	_ kvstore.Engine = (*Part)(nil)
	_ kvstore.Writer = (*Part)(nil)
)

// New returns the part of an engine below a prefix.
func New(of kvstore.Engine, prefix string, o kvstore.WriterOptions) *Part {
	p := &Part{Engine: of, prefix: prefix}
	p.EngineWriter = kvstore.NewWriter(p, o)
	p.Join(of.Status().EtcdClusterID)
	return p
}

// Get implements [kvstore.Client].
func (p *Part) Get(ctx context.Context, key string, opts ...kvstore.ReadOption) (*kvstore.KeyValue, kvstore.Position, error) {
	kv, at, err := p.Engine.Get(ctx, p.prefix+key, p.locks(opts)...)
	if err != nil || kv == nil {
		return nil, at, p.failed(ctx, err, opts...)
	}
	return &p.inner([]kvstore.KeyValue{*kv})[0], at, nil
}

// List implements [kvstore.Client].
func (p *Part) List(ctx context.Context, prefix string, page func(kvstore.Page) error, opts ...kvstore.ReadOption) (kvstore.Position, error) {
	if err := kvstore.CheckSelection("list", prefix, opts); err != nil {
		return kvstore.Position{}, err
	}
	at, err := p.Engine.List(ctx, p.prefix+prefix, func(of kvstore.Page) error {
		of.Items = p.inner(of.Items)
		return page(of)
	}, p.locks(opts)...)
	return at, p.failed(ctx, err, opts...)
}

// Recall implements [kvstore.Client].
func (p *Part) Recall(
	ctx context.Context, prefix, from string, at kvstore.Position, limit int, opts ...kvstore.SelectOption,
) (kvstore.Past, error) {
	if err := kvstore.CheckSelection("recall", prefix, opts); err != nil {
		return kvstore.Past{}, err
	}
	if from != "" {
		from = p.prefix + from
	}
	past, err := p.Engine.Recall(ctx, p.prefix+prefix, from, at, limit, opts...)
	past.Items = p.inner(past.Items)
	return past, p.failed(ctx, err)
}

// Status implements [kvstore.Client].
func (p *Part) Status() kvstore.Status {
	s := p.Engine.Status()
	p.Count(&s)
	return s
}

// Close implements [kvstore.Client].
func (p *Part) Close() {
	p.Engine.Close()
	p.Release(context.Background())
}

// Run keeps leases alive while it runs the watchdog of the engine, which must have a Run.
func (p *Part) Run(ctx context.Context, onProbe func(kvstore.Probe)) error {
	ctx, cancel := context.WithCancel(ctx)
	kept := make(chan error, 1)
	go func() { kept <- p.Keep(ctx) }()
	err := p.Engine.(interface {
		Run(ctx context.Context, onProbe func(kvstore.Probe)) error
	}).Run(ctx, onProbe)
	cancel()
	<-kept
	return err
}

// Watch implements [kvstore.Client].
func (p *Part) Watch(ctx context.Context, prefix string, after kvstore.Position, opts ...kvstore.SelectOption) (kvstore.Stream, error) {
	if err := kvstore.CheckSelection("watch", prefix, opts); err != nil {
		return nil, err
	}
	return p.stream(p.Engine.Watch(ctx, p.prefix+prefix, after, opts...))
}

// WatchNow implements [kvstore.Engine].
func (p *Part) WatchNow(ctx context.Context, key string, after kvstore.Position) (kvstore.Stream, error) {
	return p.stream(p.Engine.WatchNow(ctx, p.prefix+key, after))
}

// Transact implements [kvstore.Engine].
func (p *Part) Transact(ctx context.Context, t kvstore.Transaction) (kvstore.TxnResult, kvstore.Position, error) {
	t.Key, t.Txn = p.prefix+t.Key, p.outer(t.Txn)
	res, at, err := p.Engine.Transact(ctx, t)
	p.innerResult(res)
	return res, at, p.failed(ctx, err)
}

// outer is a transaction in the keys of the whole.
func (p *Part) outer(t kvstore.Txn) kvstore.Txn {
	var whole kvstore.Txn
	for _, c := range t.If {
		c.Key = p.prefix + c.Key
		whole.If = append(whole.If, c)
	}
	whole.Then, whole.Else = p.outerOps(t.Then), p.outerOps(t.Else)
	return whole
}

func (p *Part) outerOps(ops []kvstore.TxnOp) (whole []kvstore.TxnOp) {
	for _, op := range ops {
		op.Key = p.prefix + op.Key
		if op.End != "" {
			op.End = p.prefix + op.End
		}
		if op.Kind == kvstore.OpTxn {
			inner := p.outer(*op.Txn)
			op.Txn = &inner
		}
		whole = append(whole, op)
	}
	return whole
}

// innerResult cuts the prefix off the keys of a result.
func (p *Part) innerResult(res kvstore.TxnResult) {
	for _, part := range res.Parts {
		for i := range part.Found {
			part.Found[i].Key = part.Found[i].Key[len(p.prefix):]
		}
		if part.Txn != nil {
			p.innerResult(*part.Txn)
		}
	}
}

// inner cuts the prefix off keys.
func (p *Part) inner(items []kvstore.KeyValue) []kvstore.KeyValue {
	for i := range items {
		items[i].Key = items[i].Key[len(p.prefix):]
	}
	return items
}

// locks are those of a read, by the keys of the whole.
func (p *Part) locks(opts []kvstore.ReadOption) (whole []kvstore.ReadOption) {
	for _, o := range opts {
		if one, is := o.(kvstore.SelectOption); is {
			whole = append(whole, one)
		}
	}
	for _, l := range kvstore.HeldLocks(opts) {
		whole = append(whole, kvstore.Holding(&kvstore.Lock{Path: l.Path, Key: p.prefix + l.Key, Revision: l.Revision}))
	}
	return whole
}

// failed cuts the prefix off the key of an error. It notifies the holder of a lock that is
// lost, which a transaction does by itself.
func (p *Part) failed(ctx context.Context, err error, opts ...kvstore.ReadOption) error {
	if locks := kvstore.HeldLocks(opts); len(locks) > 0 && errors.Is(err, kvstore.ErrLockLeaseExpired) {
		t := kvstore.UnderLocks(locks)
		t.Op = "get"
		_, _, _ = p.Transact(ctx, t)
	}
	ke, ok := errors.AsType[*kvstore.KeyError](err)
	if !ok {
		return err
	}
	cut := *ke
	cut.Key = strings.TrimPrefix(ke.Key, p.prefix)
	return &cut
}

// stream is a watch of keys of the part.
type stream struct {
	kvstore.Stream
	p *Part
}

func (p *Part) stream(s kvstore.Stream, err error) (kvstore.Stream, error) {
	if err != nil {
		return nil, p.failed(context.Background(), err)
	}
	return &stream{s, p}, nil
}

// Recv implements [kvstore.Stream].
func (s *stream) Recv() (kvstore.Batch, error) {
	b, err := s.Stream.Recv()
	for i := range b.Events {
		b.Events[i].Key = b.Events[i].Key[len(s.p.prefix):]
	}
	return b, s.p.failed(context.Background(), err)
}
