package etcd

import (
	"bytes"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// This file checks answers before they are used: the owner of an etcd controls every byte of them,
// and must not be able to damage other clusters. An answer that breaks the rules of etcd's
// protocol ends the session with [kvstore.ErrProtocol].

// maxRevision is above all revisions that an etcd can reach, and small enough that
// arithmetic with revisions cannot overflow.
const maxRevision = 1 << 62

// violated returns an error that describes the broken rule.
func violated(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kvstore.ErrProtocol, cutText(fmt.Sprintf(format, args...)))
}

// maxServerText bounds the length of a text from a server that is kept, in bytes.
const maxServerText = 512

func cutText(s string) string {
	if len(s) <= maxServerText {
		return s
	}
	return s[:maxServerText] + "…"
}

// keyText returns a key in the form in which errors show it.
func keyText(key []byte) string {
	if len(key) > 128 {
		return fmt.Sprintf("%q… (%d bytes)", key[:128], len(key))
	}
	return fmt.Sprintf("%q", key)
}

// checked ends the session if err, the result of a check, is not nil, and returns the error.
func (e *Session) checked(err error) error {
	if err == nil {
		return nil
	}
	e.end(err)
	e.update((*health).closed)
	return e.over()
}

// check checks the header of a response (spec wire.md §3.4).
func (e *Session) check(h *pb.ResponseHeader) error {
	switch {
	case h == nil:
		return e.checked(violated("a response came without a header"))
	case h.ClusterId == 0:
		return e.checked(violated("a response came without an etcd cluster ID"))
	case e.pinned.CompareAndSwap(0, h.ClusterId):
		return nil
	}
	if want := e.pinned.Load(); h.ClusterId != want {
		return e.changed(fmt.Sprintf("its etcd cluster ID is %x, this session's is %x", h.ClusterId, want))
	}
	return nil
}

// checkRevision checks the header of an answer about the key space, which also has a revision.
func (e *Session) checkRevision(h *pb.ResponseHeader) error {
	if err := e.check(h); err != nil {
		return err
	}
	if h.Revision < 1 || h.Revision > maxRevision {
		return e.checked(violated("the revision of a response is %d", h.Revision))
	}
	return nil
}

// checkRange compares the answer of a range request with the request. The caller has checked
// the answer's header.
func checkRange(req *pb.RangeRequest, resp *pb.RangeResponse, head int64) error {
	if resp == nil {
		return violated("the answer to a read does not match the request")
	}
	n := int64(len(resp.Kvs))
	switch {
	case req.CountOnly && n > 0:
		return violated("%d keys were sent where they were to be counted", n)
	case req.Limit > 0 && n > req.Limit:
		return violated("a page has %d keys, at most %d were asked for", n, req.Limit)
	case resp.More && (req.Limit == 0 || n != req.Limit):
		return violated("a page of %d keys says that there are more, although it has room for them", n)
	case resp.Count < n:
		return violated("a page of %d keys counts %d keys in all", n, resp.Count)
	case resp.More && resp.Count == n:
		return violated("a page says that there are more than the %d keys that it counts", n)
	}
	upTo := head
	if req.Revision > 0 {
		if upTo = req.Revision; head < upTo {
			return violated("a read at revision %d was answered as of revision %d", req.Revision, head)
		}
	}
	return checkKeys(req, resp.Kvs, upTo)
}

// checkKeys checks that the keys of a page are within the range, ascending, and not newer
// than the revision.
func checkKeys(req *pb.RangeRequest, kvs []*mvccpb.KeyValue, upTo int64) error {
	var last []byte
	for i, kv := range kvs {
		switch {
		case kv == nil:
			return violated("a page has no key where one should be")
		case !within(req.Key, req.RangeEnd, kv.Key):
			return violated("a page has the key %s, asked for was %s", keyText(kv.Key), rangeText(req.Key, req.RangeEnd))
		case i > 0 && bytes.Compare(kv.Key, last) <= 0:
			return violated("the key %s of a page comes after %s", keyText(kv.Key), keyText(last))
		case kv.ModRevision < 1 || kv.ModRevision > upTo:
			return violated("the key %s is of revision %d, read at revision %d", keyText(kv.Key), kv.ModRevision, upTo)
		}
		last = kv.Key
	}
	return nil
}

// leastOf describes the answer of a range request that cannot be made smaller; empty for other requests.
func leastOf(req *pb.RangeRequest) string {
	switch {
	case req.CountOnly:
		return "a number of keys"
	case req.Limit == 1 || len(req.RangeEnd) == 0:
		return "a page of one key"
	}
	return ""
}

// atLeast makes a violation of the error of an answer that is too large to be received, if the request
// was the smallest possible one. Then what describes the answer; otherwise it is empty.
func (e *Session) atLeast(what string, err error) error {
	if what == "" || !isTooLarge(err) {
		return err
	}
	return e.checked(violated("%s is larger than %d MiB, or has more than %d entries: %v", what, receiveLimit>>20, maxParts, fromRPC(err)))
}

// within reports whether a key is in a range; a range without an end is one key.
func within(from, end, key []byte) bool {
	if len(end) == 0 {
		return bytes.Equal(from, key)
	}
	return bytes.Compare(from, key) <= 0 && bytes.Compare(key, end) < 0
}

func rangeText(from, end []byte) string {
	if len(end) == 0 {
		return keyText(from)
	}
	return "the range from " + keyText(from) + " to " + keyText(end) + ", exclusive"
}

// checkTxn compares the answer of a transaction with the request: each part of the
// executed branch needs an answer of its kind.
func checkTxn(req *pb.TxnRequest, resp *pb.TxnResponse, head int64) error {
	if resp == nil {
		return violated("a transaction was not answered with its outcome")
	}
	asked := req.Success
	if !resp.Succeeded {
		asked = req.Failure
	}
	if len(asked) != len(resp.Responses) {
		return violated("a transaction of %d parts was answered with %d", len(asked), len(resp.Responses))
	}
	for i, op := range asked {
		if err := checkOp(op, resp.Responses[i], head); err != nil {
			return err
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp, answer *pb.ResponseOp, head int64) error {
	var same bool
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		// A condition on revisions of creation leaves keys out of a page, and the
		// answers within a transaction have no header of their own.
		return checkRange(r.RequestRange, answer.GetResponseRange(), head)
	case *pb.RequestOp_RequestTxn:
		return checkTxn(r.RequestTxn, answer.GetResponseTxn(), head)
	case *pb.RequestOp_RequestPut:
		same = answer.GetResponsePut() != nil
	case *pb.RequestOp_RequestDeleteRange:
		same = answer.GetResponseDeleteRange() != nil
	}
	if !same {
		return violated("a part of a transaction was answered with %T", answer.GetResponse())
	}
	return nil
}

// checkEvents checks that the events of a watch are of the watched keys, in the order of their
// revisions, above the revision that the stream has reached, and not above that of the server.
func checkEvents(events []*mvccpb.Event, from, end []byte, after, last, head int64) error {
	for _, ev := range events {
		kv := ev.GetKv()
		switch {
		case kv == nil:
			return violated("an event has no key")
		case ev.Type != mvccpb.Event_PUT && ev.Type != mvccpb.Event_DELETE:
			return violated("an event of %s is of the unknown kind %d", keyText(kv.Key), ev.Type)
		case !within(from, end, kv.Key):
			return violated("an event is about the key %s, watched is %s", keyText(kv.Key), rangeText(from, end))
		case kv.ModRevision <= after:
			return violated("an event of %s is of revision %d, everything up to %d was reached", keyText(kv.Key), kv.ModRevision, after)
		case kv.ModRevision < last:
			return violated("an event of %s is of revision %d, after one of %d", keyText(kv.Key), kv.ModRevision, last)
		case kv.ModRevision > head:
			return violated("an event of %s is of revision %d, the server is at %d", keyText(kv.Key), kv.ModRevision, head)
		}
		last = kv.ModRevision
	}
	return nil
}

// maxGrant is longer than every TTL that a client requests.
const maxGrant = 366 * 24 * time.Hour

func checkGrant(r *pb.LeaseGrantResponse) error {
	if r.GetID() == 0 || r.GetTTL() < 1 || r.GetTTL() > int64(maxGrant/time.Second) {
		return violated("a lease was granted with ID %x for %d s", r.GetID(), r.GetTTL())
	}
	return nil
}
