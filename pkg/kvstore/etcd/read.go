package etcd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Get implements [kvstore.Client].
func (e *Session) Get(ctx context.Context, key string, opts ...kvstore.ReadOption) (*kvstore.KeyValue, kvstore.Position, error) {
	var kv *kvstore.KeyValue
	var at kvstore.Position
	err := e.operate(ctx, "get", key, e.opts.Timings.Read, func(ctx context.Context) error {
		resp, pos, err := e.readNow(ctx, &pb.RangeRequest{Key: []byte(key)}, kvstore.HeldLocks(opts)...)
		if err == nil && len(resp.Kvs) > 0 {
			v := fromPB(resp.Kvs[0])
			kv = &v
		}
		at = pos
		return err
	})
	return kv, at, err
}

// Head implements [kvstore.Client]. It reads the heartbeat key, because every user of a mesh
// may read it.
func (e *Session) Head(ctx context.Context) (at kvstore.Position, err error) {
	err = e.operate(ctx, "head", wire.HeartbeatKey, e.opts.Timings.Read, func(ctx context.Context) (err error) {
		_, at, err = e.readNow(ctx, headRequest())
		return err
	})
	return at, err
}

// head is Head without limits: the watchdog must not wait for lists.
func (e *Session) head(ctx context.Context, d time.Duration) (kvstore.Position, error) {
	s := e.scope(ctx, "linearizable read", d)
	defer s.close()
	start := time.Now()
	_, at, err := e.readNow(s.ctx, headRequest())
	if err != nil {
		err = e.explain(s, "probe", wire.HeartbeatKey, err)
	}
	e.record("probe", wire.HeartbeatKey, time.Since(start), err)
	return at, err
}

func headRequest() *pb.RangeRequest {
	return &pb.RangeRequest{Key: []byte(wire.HeartbeatKey), CountOnly: true}
}

// readNow makes a linearizable read at the current revision.
func (e *Session) readNow(ctx context.Context, req *pb.RangeRequest, holding ...*kvstore.Lock) (*pb.RangeResponse, kvstore.Position, error) {
	before := e.highest.Load()
	resp, err := e.readRange(ctx, req, holding)
	if err != nil {
		return nil, kvstore.Position{}, err
	}
	at, err := e.linearizable(before, resp.GetHeader().GetRevision())
	return resp, at, err
}

// readRange reads, with locks in one transaction that proves them, and checks the answer.
func (e *Session) readRange(ctx context.Context, req *pb.RangeRequest, holding []*kvstore.Lock) (*pb.RangeResponse, error) {
	t := kvstore.UnderLocks(holding)
	if len(t.Locks) == 0 {
		resp, err := e.kv.Range(ctx, req)
		if err != nil {
			return nil, e.atLeast(leastOf(req), err)
		}
		if err := e.checkRevision(resp.GetHeader()); err != nil {
			return nil, err
		}
		return resp, e.checked(checkRange(req, resp, resp.Header.Revision))
	}
	txn := toPB(t.Txn)
	txn.Success = []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: req}}}
	resp, err := e.exchange(ctx, txn)
	if err != nil {
		return nil, e.atLeast(leastOf(req), err)
	}
	if !resp.Succeeded {
		return nil, cmp.Or(t.Lost(resultOf(txn, resp)), kvstore.ErrLockLeaseExpired)
	}
	r := resp.Responses[0].GetResponseRange()
	r.Header = resp.Header // the header of a part only has a revision
	return r, nil
}

// List implements [kvstore.Client].
func (e *Session) List(ctx context.Context, prefix string, page func(kvstore.Page) error, opts ...kvstore.ReadOption) (kvstore.Position, error) {
	if err := kvstore.CheckSelection("list", prefix, opts); err != nil {
		return kvstore.Position{}, err
	}
	if err := e.admit(ctx, "list", prefix); err != nil {
		return kvstore.Position{}, err
	}
	l := lister{e: e, prefix: prefix, end: kvstore.SelectionEnd(prefix), limit: int64(e.opts.PageLimit), holding: kvstore.HeldLocks(opts)}
	err := l.run(ctx, page)
	e.record("list", prefix, l.took, l.failed)
	if err != nil {
		return kvstore.Position{}, err
	}
	return l.at, nil
}

// Recall implements [kvstore.Client].
func (e *Session) Recall(
	ctx context.Context, prefix, from string, at kvstore.Position, limit int, opts ...kvstore.SelectOption,
) (kvstore.Past, error) {
	if err := kvstore.CheckSelection("recall", prefix, opts); err != nil {
		return kvstore.Past{}, err
	}
	if at.ClusterID != e.pinned.Load() {
		return kvstore.Past{}, hint.Failed("recall", prefix, e.foreign(at))
	}
	var past kvstore.Past
	err := e.operate(ctx, "recall", prefix, e.opts.Timings.Page, func(ctx context.Context) error {
		for ; ; limit /= 2 {
			resp, _, err := e.readNow(ctx, &pb.RangeRequest{
				Key: []byte(max(prefix, from)), RangeEnd: []byte(kvstore.SelectionEnd(prefix)),
				Limit: int64(limit), Revision: at.Revision,
			})
			switch {
			case err == nil:
				past = kvstore.Past{Items: fromPBs(resp.Kvs), Count: resp.Count}
				return nil
			case !isTooLarge(err) || limit <= 1:
				return err
			}
		}
	})
	return past, err
}

// foreign returns the error for a position of another etcd.
func (e *Session) foreign(at kvstore.Position) error {
	return fmt.Errorf("%w: the position is one of etcd cluster ID %x, this session's is %x", kvstore.ErrServerChanged, at.ClusterID, e.pinned.Load())
}

type lister struct {
	e           *Session
	prefix, end string
	limit       int64 // keys in the next page, 0 for all
	holding     []*kvstore.Lock
	at          kvstore.Position
	took        time.Duration // spent in requests
	failed      error         // of a request, not of the page function
}

func (l *lister) run(ctx context.Context, page func(kvstore.Page) error) error {
	from := []byte(l.prefix)
	for more := true; more; {
		resp, err := l.request(ctx, from)
		if err != nil {
			l.failed = err
			return err
		}
		if len(resp.Kvs) == 0 {
			return nil
		}
		more = resp.More
		items := fromPBs(resp.Kvs)
		from = append(bytes.Clone(items[len(items)-1].Key), 0) // the smallest key after the last one
		l.limit = nextLimit(l.limit, items)
		// page may block for a long time: from here on only page refers to the items.
		if err := page(kvstore.Page{Items: items, At: l.at, Left: resp.Count - int64(len(items))}); err != nil {
			return err
		}
	}
	return nil
}

// request gets one page. The first page decides the revision of all pages. If a page is too large
// to be received, request asks for half as many keys.
func (l *lister) request(ctx context.Context, from []byte) (*pb.RangeResponse, error) {
	for {
		var resp *pb.RangeResponse
		took, err := l.e.call(ctx, "list", l.prefix, l.e.opts.Timings.Page, func(ctx context.Context) error {
			var err error
			req := &pb.RangeRequest{Key: from, RangeEnd: []byte(l.end), Limit: l.limit, Revision: l.at.Revision}
			if l.at.Revision == 0 {
				resp, l.at, err = l.e.readNow(ctx, req, l.holding...)
				return err
			}
			resp, err = l.e.readRange(ctx, req, l.holding)
			return err
		})
		l.took += took
		switch {
		case err == nil:
			return resp, nil
		case !isTooLarge(err):
			return nil, err
		case l.limit == 0:
			l.limit = int64(DefaultOptions().PageLimit)
		default:
			l.limit /= 2
		}
	}
}

// pageBytes is the size of a page, in bytes, above which the next pages are made smaller.
const pageBytes = 4 << 20

// nextLimit returns the limit of the next page. It is smaller after a large page, and never larger.
func nextLimit(limit int64, last []kvstore.KeyValue) int64 {
	size := 0
	for i := range last {
		size += len(last[i].Key) + len(last[i].Value)
	}
	if limit == 0 || size <= pageBytes {
		return limit
	}
	return min(limit, max(1, int64(len(last))*pageBytes/int64(size)))
}

func fromPB(kv *mvccpb.KeyValue) kvstore.KeyValue {
	return kvstore.KeyValue{Key: kv.Key, Value: kv.Value, ModRevision: kv.ModRevision, Lease: kv.Lease}
}

func fromPBs(kvs []*mvccpb.KeyValue) []kvstore.KeyValue {
	items := make([]kvstore.KeyValue, len(kvs))
	for i, kv := range kvs {
		items[i] = fromPB(kv)
	}
	return items
}
