package kvstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// transact implements server: a Memory understands what etcd is asked, as far as
// this package asks it.
func (m *Memory) transact(ctx context.Context, t transaction) (*pb.TxnResponse, Position, error) {
	var resp *pb.TxnResponse
	at, err := m.operate(ctx, t.op, t.key, func(s *memStore) error {
		if err := s.mayApply(t.req); err != nil {
			return err
		}
		var events []Event
		resp, events = s.apply(t.req)
		if len(events) > 0 {
			s.write(events)
			m.addr.changed()
		}
		return t.lost(resp)
	})
	if err != nil {
		return nil, Position{}, err
	}
	return resp, at, nil
}

// mayApply checks that all leases exist, before anything is done.
func (s *memStore) mayApply(req *pb.TxnRequest) error {
	for _, op := range slices.Concat(req.Success, req.Failure) {
		if put := op.GetRequestPut(); put != nil && put.Lease != 0 && !s.leases[put.Lease] {
			return fromRPC(rpctypes.ErrGRPCLeaseNotFound)
		}
		if inner := op.GetRequestTxn(); inner != nil {
			if err := s.mayApply(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply evaluates a transaction; the events are what it is to change.
func (s *memStore) apply(req *pb.TxnRequest) (*pb.TxnResponse, []Event) {
	resp := &pb.TxnResponse{Succeeded: true}
	for _, c := range req.Compare {
		resp.Succeeded = resp.Succeeded && s.compare(c)
	}
	ops := req.Success
	if !resp.Succeeded {
		ops = req.Failure
	}
	var events []Event
	for _, op := range ops {
		r, changes := s.do(op)
		resp.Responses = append(resp.Responses, r)
		events = append(events, changes...)
	}
	return resp, events
}

func (s *memStore) do(op *pb.RequestOp) (*pb.ResponseOp, []Event) {
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		put := r.RequestPut
		kv := KeyValue{Key: put.Key, Value: put.Value, Lease: put.Lease}
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}}, []Event{{KeyValue: kv}}
	case *pb.RequestOp_RequestDeleteRange:
		var events []Event
		for _, key := range s.between(r.RequestDeleteRange.Key, r.RequestDeleteRange.RangeEnd) {
			events = append(events, Event{Type: EventDelete, KeyValue: KeyValue{Key: []byte(key)}})
		}
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{
			ResponseDeleteRange: &pb.DeleteRangeResponse{Deleted: int64(len(events))},
		}}, events
	case *pb.RequestOp_RequestTxn:
		resp, events := s.apply(r.RequestTxn)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: resp}}, events
	default:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: s.rangeOf(op.GetRequestRange())}}, nil
	}
}

func (s *memStore) rangeOf(r *pb.RangeRequest) *pb.RangeResponse {
	resp := &pb.RangeResponse{}
	for _, key := range s.between(r.Key, r.RangeEnd) {
		if kv := s.full(key); r.MaxCreateRevision == 0 || kv.CreateRevision <= r.MaxCreateRevision {
			resp.Kvs = append(resp.Kvs, kv)
		}
	}
	return resp
}

// between returns the keys from one to before another, in order; with an empty
// end the one key.
func (s *memStore) between(key, end []byte) []string {
	if len(end) == 0 {
		if _, ok := s.items[string(key)]; ok {
			return []string{string(key)}
		}
		return nil
	}
	var keys []string
	for k := range s.items {
		if k >= string(key) && k < string(end) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}

// full is a key as etcd tells it; all zero for an absent one.
func (s *memStore) full(key string) *mvccpb.KeyValue {
	kv, ok := s.items[key]
	if !ok {
		return &mvccpb.KeyValue{}
	}
	return &mvccpb.KeyValue{
		Key: kv.Key, Value: kv.Value, Lease: kv.Lease, ModRevision: kv.ModRevision, CreateRevision: s.created[key],
	}
}

func (s *memStore) compare(c *pb.Compare) bool {
	kv, order := s.full(string(c.Key)), 0
	switch c.Target {
	case pb.Compare_VALUE:
		if kv.Key == nil {
			return false
		}
		order = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		order = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_LEASE:
		order = cmp.Compare(kv.Lease, c.GetLease())
	default:
		panic(fmt.Sprintf("a memory cannot compare %v", c.Target))
	}
	switch c.Result {
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

// Afterwards makes the error of a [Fault] one that comes after the operation has
// been done: who asked for it does not know the outcome.
func Afterwards(err error) error { return &afterwards{err} }

type afterwards struct{ error }

func (a *afterwards) Unwrap() error { return a.error }

// comesAfter tells whether a fault's error comes after the operation.
func comesAfter(err error) bool {
	var a *afterwards
	return errors.As(err, &a)
}
