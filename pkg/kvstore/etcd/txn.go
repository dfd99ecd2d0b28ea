package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// toPB is a transaction in etcd's words.
func toPB(t kvstore.Txn) *pb.TxnRequest {
	req := &pb.TxnRequest{Success: opsToPB(t.Then), Failure: opsToPB(t.Else)}
	if len(t.If) > 0 {
		req.Compare = make([]*pb.Compare, len(t.If))
	}
	for i, c := range t.If {
		req.Compare[i] = conditionToPB(c)
	}
	return req
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

func opsToPB(ops []kvstore.TxnOp) []*pb.RequestOp {
	if len(ops) == 0 {
		return nil
	}
	to := make([]*pb.RequestOp, len(ops))
	for i := range ops {
		to[i] = opToPB(&ops[i])
	}
	return to
}

func opToPB(op *kvstore.TxnOp) *pb.RequestOp {
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
		kvs := answer.GetResponseRange().GetKvs()
		part := kvstore.PartResult{Kind: kvstore.OpRead}
		for _, kv := range kvs {
			part.Found = append(part.Found, kvstore.Found{KeyValue: fromPB(kv), Created: kv.CreateRevision})
		}
		return part
	}
}
