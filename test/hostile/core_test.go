package hostile

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"
)

// core is the honest part of the fake etcd: keys with their versions, and the history of events.
type core struct {
	mu        sync.Mutex // guards everything below
	id        uint64     // etcd cluster ID
	rev       int64
	compacted int64
	versions  map[string][]version // in the order of their revisions
	sorted    []string             // all keys of versions; nil when it has to be built again
	history   []*mvccpb.Event      // since compacted
	moved     chan struct{}        // closed and replaced with each revision
}

// version is a key's contents from a revision on.
type version struct {
	kv   *mvccpb.KeyValue
	gone bool
}

func newCore(id uint64) *core {
	return &core{id: id, rev: 1, versions: make(map[string][]version), moved: make(chan struct{})}
}

// header is the header of a valid answer.
func (c *core) header() *pb.ResponseHeader {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head()
}

func (c *core) head() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: c.id, MemberId: 1, Revision: c.rev, RaftTerm: 2}
}

// put writes keys in one revision.
func (c *core) put(kvs map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rev++
	for _, key := range slices.Sorted(maps.Keys(kvs)) {
		c.set(key, kvs[key], 0)
	}
	c.move()
}

// delete deletes a key.
func (c *core) delete(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rev++
	c.unset(key)
	c.move()
}

// compact drops the history up to now.
func (c *core) compact() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compacted, c.history = c.rev, nil
	for key, all := range c.versions {
		if last := all[len(all)-1]; !last.gone {
			c.versions[key] = []version{last}
		} else {
			delete(c.versions, key)
			c.sorted = nil
		}
	}
}

// become makes it another etcd with the same keys.
func (c *core) become(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = id
}

// move wakes up the watchers. The lock is held, here and below.
func (c *core) move() {
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *core) set(key string, value []byte, lease int64) {
	kv := &mvccpb.KeyValue{Key: []byte(key), Value: value, CreateRevision: c.rev, ModRevision: c.rev, Version: 1, Lease: lease}
	if before := c.current(key, c.rev); before != nil {
		kv.CreateRevision, kv.Version = before.CreateRevision, before.Version+1
	}
	c.add(key, version{kv: kv}, mvccpb.Event_PUT)
}

func (c *core) unset(key string) bool {
	if c.current(key, c.rev) == nil {
		return false
	}
	c.add(key, version{kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: c.rev}, gone: true}, mvccpb.Event_DELETE)
	return true
}

func (c *core) add(key string, v version, what mvccpb.Event_EventType) {
	if _, known := c.versions[key]; !known {
		c.sorted = nil
	}
	c.versions[key] = append(c.versions[key], v)
	c.history = append(c.history, &mvccpb.Event{Type: what, Kv: v.kv})
}

// current is the contents of a key at a revision, nil for none.
func (c *core) current(key string, rev int64) *mvccpb.KeyValue {
	for _, v := range slices.Backward(c.versions[key]) {
		if v.kv.ModRevision <= rev {
			if v.gone {
				return nil
			}
			return v.kv
		}
	}
	return nil
}

// read handles a range request.
func (c *core) read(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked(r)
}

func (c *core) readLocked(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	rev := r.Revision
	switch {
	case rev <= 0:
		rev = c.rev
	case rev > c.rev:
		return nil, rpctypes.ErrGRPCFutureRev
	case rev < c.compacted:
		return nil, rpctypes.ErrGRPCCompacted
	}
	if c.sorted == nil {
		c.sorted = slices.Sorted(maps.Keys(c.versions))
	}
	a := &pb.RangeResponse{Header: c.head()}
	from, _ := slices.BinarySearch(c.sorted, string(r.Key))
	for _, key := range c.sorted[from:] {
		if !within([]byte(key), r.Key, r.RangeEnd) {
			break
		}
		kv := c.current(key, rev)
		if kv == nil || r.MaxCreateRevision > 0 && kv.CreateRevision > r.MaxCreateRevision {
			continue
		}
		a.Count++
		switch {
		case r.CountOnly:
		case r.Limit > 0 && int64(len(a.Kvs)) == r.Limit:
			a.More = true
		default:
			a.Kvs = append(a.Kvs, clone(kv, r.KeysOnly))
		}
	}
	return a, nil
}

// within reports whether a requested range includes a key.
func within(key, from, end []byte) bool {
	switch {
	case len(end) == 0:
		return bytes.Equal(key, from)
	case len(end) == 1 && end[0] == 0:
		return bytes.Compare(key, from) >= 0
	}
	return bytes.Compare(key, from) >= 0 && bytes.Compare(key, end) < 0
}

// clone is a copy whose fields can be changed; the bytes cannot.
func clone(kv *mvccpb.KeyValue, keyOnly bool) *mvccpb.KeyValue {
	out := &mvccpb.KeyValue{
		Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: kv.Lease,
	}
	if !keyOnly {
		out.Value = kv.Value
	}
	return out
}

// since returns the events of a range from a revision on, and a channel that is closed when there may be more.
func (c *core) since(rev int64, from, end []byte) (events []*mvccpb.Event, head *pb.ResponseHeader, compacted int64, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rev <= c.compacted {
		return nil, c.head(), c.compacted, c.moved
	}
	first, _ := slices.BinarySearchFunc(c.history, rev, func(e *mvccpb.Event, rev int64) int {
		return int(e.Kv.ModRevision - rev)
	})
	for _, e := range c.history[first:] {
		if within(e.Kv.Key, from, end) {
			events = append(events, &mvccpb.Event{Type: e.Type, Kv: clone(e.Kv, false)})
		}
	}
	return events, c.head(), 0, c.moved
}

// transact handles a transaction.
func (c *core) transact(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rev++
	before := len(c.history)
	a, err := c.do(r)
	if len(c.history) == before {
		c.rev--
	}
	if err != nil {
		return nil, err
	}
	a.Header = c.head()
	c.move()
	return a, nil
}

func (c *core) do(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	a := &pb.TxnResponse{Header: c.head(), Succeeded: !slices.ContainsFunc(r.Compare, func(k *pb.Compare) bool { return !c.holds(k) })}
	ops := r.Success
	if !a.Succeeded {
		ops = r.Failure
	}
	for _, op := range ops {
		one, err := c.one(op)
		if err != nil {
			return nil, err
		}
		a.Responses = append(a.Responses, one)
	}
	return a, nil
}

func (c *core) one(op *pb.RequestOp) (*pb.ResponseOp, error) {
	switch q := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		c.set(string(q.RequestPut.Key), q.RequestPut.Value, q.RequestPut.Lease)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{Header: c.head()}}}, nil
	case *pb.RequestOp_RequestDeleteRange:
		n := int64(0)
		for key := range maps.Clone(c.versions) {
			if within([]byte(key), q.RequestDeleteRange.Key, q.RequestDeleteRange.RangeEnd) && c.unset(key) {
				n++
			}
		}
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{Header: c.head(), Deleted: n}}}, nil
	case *pb.RequestOp_RequestTxn:
		a, err := c.do(q.RequestTxn)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: a}}, err
	default:
		a, err := c.readLocked(op.GetRequestRange())
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: a}}, err
	}
}

// holds reports whether a condition of a transaction is met.
func (c *core) holds(k *pb.Compare) bool {
	kv := c.current(string(k.Key), c.rev)
	if kv == nil {
		if k.Target == pb.Compare_VALUE {
			return false
		}
		kv = new(mvccpb.KeyValue)
	}
	order := 0
	switch k.Target {
	case pb.Compare_VALUE:
		order = bytes.Compare(kv.Value, k.GetValue())
	case pb.Compare_CREATE:
		order = int(kv.CreateRevision - k.GetCreateRevision())
	case pb.Compare_MOD:
		order = int(kv.ModRevision - k.GetModRevision())
	case pb.Compare_VERSION:
		order = int(kv.Version - k.GetVersion())
	case pb.Compare_LEASE:
		order = int(kv.Lease - k.GetLease())
	}
	switch k.Result {
	case pb.Compare_EQUAL:
		return order == 0
	case pb.Compare_GREATER:
		return order > 0
	case pb.Compare_LESS:
		return order < 0
	default:
		return order != 0
	}
}

// copyOf is a deep copy of an answer.
func copyOf[M proto.Message](m M) M { return proto.Clone(m).(M) }
