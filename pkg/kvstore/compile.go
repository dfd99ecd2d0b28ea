package kvstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// transaction is one write, compiled: what etcd is asked, and for whom.
type transaction struct {
	// op and key name the operation in errors, figures and traces.
	op, key string
	// limited operations wait for the limits of rate and of operations under way.
	limited bool
	// locks are those that must be held. The failure branch reads their keys
	// first, one after another, to tell a lost lock from other conditions.
	locks []*Lock
	req   *pb.TxnRequest
}

var errEmptyKey = errors.New("the key is empty")

// compilePut makes the transaction of a Put, with the lease that the key is to be
// tied to, 0 for none.
func compilePut(key string, value []byte, lease int64, r request) (transaction, error) {
	put := &pb.PutRequest{Key: []byte(key), Value: value, Lease: lease}
	t, err := compile("put", key, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}, r)
	if err == nil && r.ifChanged {
		t.req.Success = []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: unlessSame(put, t.req.Success)}}}
	}
	return t, err
}

// unlessSame does what it is given unless the key is already as the put would
// make it.
func unlessSame(put *pb.PutRequest, do []*pb.RequestOp) *pb.TxnRequest {
	return &pb.TxnRequest{Compare: isSame(put), Failure: do}
}

// isSame tells whether the key is already as the put would make it.
func isSame(put *pb.PutRequest) []*pb.Compare {
	return []*pb.Compare{
		compareValue(put.Key, put.Value),
		{Key: put.Key, Target: pb.Compare_LEASE, TargetUnion: &pb.Compare_Lease{Lease: put.Lease}},
	}
}

// compileLook makes the transaction that only looks whether a Put has nothing to do:
// all its conditions hold, and the key is already as it would make it. It reads the
// key, without its value: to etcd a transaction without any part is one that may be
// answered from what a server that is left behind has.
func compileLook(key string, value []byte, lease int64, r request) (transaction, error) {
	look := &pb.RangeRequest{Key: []byte(key), KeysOnly: true}
	t, err := compile("put", key, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: look}}, r)
	if err == nil {
		t.req.Compare = append(t.req.Compare, isSame(&pb.PutRequest{Key: []byte(key), Value: value, Lease: lease})...)
	}
	return t, err
}

// compileDelete makes the transaction of a Delete.
func compileDelete(key string, r request) (transaction, error) {
	if err := r.forPutAlone(); err != nil {
		return transaction{}, &KeyError{"delete", key, err}
	}
	return compile("delete", key, deletion(key, ""), r)
}

// compileDeletePrefix makes the transaction of a DeletePrefix.
func compileDeletePrefix(prefix string, r request) (transaction, error) {
	const op = "delete prefix"
	if err := r.forPutAlone(); err != nil {
		return transaction{}, &KeyError{op, prefix, err}
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		return transaction{}, &KeyError{op, prefix, unfitError(fmt.Sprintf(
			"a prefix ends in /: give %q for all keys below it, or use Delete for the one key", prefix+"/"))}
	}
	if r.ifRevision != nil || r.ifValue != nil {
		return transaction{}, &KeyError{op, prefix, errors.New("IfRevision and IfValue are about one key")}
	}
	return compile(op, prefix, deletion(prefix, selectionEnd(prefix)), r)
}

// compileUpdate makes the transaction of an Update. leases are those that the
// puts are to be tied to, one for each write; nil for none.
func compileUpdate(writes []Write, leases []int64, r request) (transaction, error) {
	do := make([]*pb.RequestOp, len(writes))
	for i, w := range writes {
		if w.Delete {
			do[i] = deletion(w.Key, "")
		} else {
			put := &pb.PutRequest{Key: []byte(w.Key), Value: w.Value}
			if leases != nil {
				put.Lease = leases[i]
			}
			do[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}
		}
		if w.Kept != nil {
			do[i] = unlessUnleased(w.Key, do[i])
		}
	}
	t, err := compile("update", writes[0].Key, do[0], r)
	if err == nil {
		t.req.Success = grouped(do)
	}
	return t, err
}

// unlessUnleased makes a write unless the key exists and is tied to no lease: then it
// is read. An absent key has the lease 0 as well.
func unlessUnleased(key string, do *pb.RequestOp) *pb.RequestOp {
	exists := compareCreated([]byte(key), pb.Compare_GREATER, 0)
	unleased := &pb.Compare{Key: []byte(key), Target: pb.Compare_LEASE, TargetUnion: &pb.Compare_Lease{}}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{
		Compare: []*pb.Compare{exists, unleased}, Success: []*pb.RequestOp{readKey(key)}, Failure: []*pb.RequestOp{do},
	}}}
}

// keptBy returns what an Update has left alone, nil for each write that was made.
func keptBy(writes []Write, resp *pb.TxnResponse) []*KeyValue {
	answers := resp.Responses
	if len(writes) > updateFlat {
		answers = nil
		for _, group := range resp.Responses {
			answers = append(answers, group.GetResponseTxn().GetResponses()...)
		}
	}
	kept := make([]*KeyValue, len(writes))
	for i, w := range writes {
		if inner := answers[i].GetResponseTxn(); w.Kept != nil && inner.GetSucceeded() {
			for _, kv := range inner.Responses[0].GetResponseRange().GetKvs() {
				one := fromPB(kv)
				kept[i] = &one
			}
		}
	}
	return kept
}

// grouped is how the parts of an Update fit into one transaction.
func grouped(do []*pb.RequestOp) []*pb.RequestOp {
	if len(do) <= updateFlat {
		return do
	}
	groups := make([]*pb.RequestOp, 0, updateGroups)
	for some := range slices.Chunk(do, groupWrites) {
		groups = append(groups, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: some}}})
	}
	return groups
}

// unfitError is why an Update is none, whatever the server.
type unfitError string

func (e unfitError) Error() string { return string(e) }

// checkUpdate tells what is wrong with the writes or the options of an Update.
func checkUpdate(writes []Write, r request) error {
	if len(writes) == 0 {
		return &KeyError{"update", "", unfitError("there is nothing to write")}
	}
	fail := func(key, why string) error { return &KeyError{"update", key, unfitError(why)} }
	switch {
	case r.ifAbsent || r.ifChanged || r.ifRevision != nil || r.ifValue != nil || r.ifOther != nil:
		return fail(writes[0].Key, "an Update takes Leased and Holding alone")
	case len(writes) > MaxWrites:
		return fail(writes[0].Key, fmt.Sprintf("%d writes: there may be %d at once", len(writes), MaxWrites))
	}
	keys := make(map[string]struct{}, len(writes))
	for _, w := range writes {
		if w.Key == "" {
			return fail(w.Key, errEmptyKey.Error())
		}
		if _, twice := keys[w.Key]; twice {
			return fail(w.Key, "the key is written twice at once")
		}
		keys[w.Key] = struct{}{}
	}
	return nil
}

func deletion(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)},
	}}
}

func (r request) forPutAlone() error {
	if r.leased || r.ifAbsent || r.ifChanged {
		return errors.New("Leased, IfAbsent and IfChanged are not for a deletion")
	}
	return nil
}

func compile(op, key string, do *pb.RequestOp, r request) (transaction, error) {
	if key == "" {
		return transaction{}, &KeyError{op, key, errEmptyKey}
	}
	t := transaction{op: op, key: key, limited: true}
	t.req = &pb.TxnRequest{Compare: r.conditions([]byte(key)), Success: []*pb.RequestOp{do}}
	t.rely(r.holding)
	return t, nil
}

// rely has the failure branch tell which of the locks are lost; nil locks are none.
func (t *transaction) rely(locks []*Lock) {
	for _, l := range locks {
		if l != nil {
			t.locks = append(t.locks, l)
			t.req.Failure = append(t.req.Failure, readKey(l.Key))
		}
	}
}

func readKey(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}}
}

// conditions are all of them but IfChanged, which is no condition of the rest.
func (r request) conditions(key []byte) []*pb.Compare {
	all := heldLocks(r.holding)
	if r.ifAbsent {
		all = append(all, compareCreated(key, pb.Compare_EQUAL, 0))
	}
	if r.ifRevision != nil {
		all = append(all, &pb.Compare{
			Key: key, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: *r.ifRevision},
		})
	}
	if r.ifValue != nil {
		all = append(all, compareValue(key, r.ifValue))
	}
	for _, o := range r.ifOther {
		all = append(all, compareValue([]byte(o.key), o.value))
	}
	return all
}

// compareValue holds for no absent key.
func compareValue(key, value []byte) *pb.Compare {
	return &pb.Compare{Key: key, Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: value}}
}

// compareCreated compares the revision at which the key was created, 0 for an
// absent one.
func compareCreated(key []byte, result pb.Compare_CompareResult, rev int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_CREATE, Result: result,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: rev},
	}
}

// lost tells whether a lock is why the conditions did not hold.
func (t transaction) lost(resp *pb.TxnResponse) error {
	if resp.Succeeded {
		return nil
	}
	for i, l := range t.locks {
		kvs := resp.Responses[i].GetResponseRange().GetKvs()
		if len(kvs) == 0 || kvs[0].CreateRevision != l.Revision {
			l.isLost()
			return lostBy(l)
		}
	}
	return nil
}

// result reads the answer of a write whose locks were held.
func result(resp *pb.TxnResponse, at Position) Result {
	r := Result{Met: resp.Succeeded, At: at}
	if resp.Succeeded {
		r.count(resp)
	}
	return r
}

// count counts what the parts of a transaction have done; those that are transactions
// are groups of an Update, unlessUnleased or unlessSame. A read does nothing.
func (r *Result) count(resp *pb.TxnResponse) {
	for _, op := range resp.Responses {
		switch {
		case op.GetResponsePut() != nil:
			r.Done = true
		case op.GetResponseDeleteRange() != nil:
			r.Deleted += op.GetResponseDeleteRange().Deleted
			r.Done = r.Done || r.Deleted > 0
		case op.GetResponseTxn() != nil:
			r.count(op.GetResponseTxn())
		}
	}
}
