package kvstore

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// inWords renders a transaction in words.
func inWords(req *pb.TxnRequest) string {
	var b strings.Builder
	for i, c := range req.Compare {
		if i > 0 {
			b.WriteString(" and ")
		}
		fmt.Fprintf(&b, "%s %s %s", c.Key, c.Target, c.Result)
		switch u := c.TargetUnion.(type) {
		case *pb.Compare_Value:
			fmt.Fprintf(&b, " %q", u.Value)
		case *pb.Compare_CreateRevision:
			fmt.Fprintf(&b, " %d", u.CreateRevision)
		case *pb.Compare_ModRevision:
			fmt.Fprintf(&b, " %d", u.ModRevision)
		case *pb.Compare_Lease:
			fmt.Fprintf(&b, " %x", u.Lease)
		}
	}
	return fmt.Sprintf("if [%s] then [%s] else [%s]", b.String(), ops(req.Success), ops(req.Failure))
}

func ops(all []*pb.RequestOp) string {
	var words []string
	for _, op := range all {
		switch {
		case op.GetRequestPut() != nil:
			p := op.GetRequestPut()
			words = append(words, fmt.Sprintf("put %s=%s lease %x", p.Key, p.Value, p.Lease))
		case op.GetRequestDeleteRange() != nil:
			d := op.GetRequestDeleteRange()
			words = append(words, fmt.Sprintf("delete %s..%s", d.Key, d.RangeEnd))
		case op.GetRequestTxn() != nil:
			words = append(words, inWords(op.GetRequestTxn()))
		default:
			words = append(words, fmt.Sprintf("get %s", op.GetRequestRange().Key))
		}
	}
	return strings.Join(words, ", ")
}

func TestWritesCompileToOneTransaction(t *testing.T) {
	t.Parallel()
	a, b := &Lock{Path: "l/a", Key: "l/a/1", Revision: 7}, &Lock{Path: "l/b", Key: "l/b/1", Revision: 8}
	put := func(opts ...Option) func() (transaction, error) {
		return func() (transaction, error) {
			r, lease := requested(opts), int64(0)
			if r.leased {
				lease = 0x1f
			}
			return compilePut("k", []byte("v"), lease, r)
		}
	}
	look := func(opts ...Option) func() (transaction, error) {
		return func() (transaction, error) { return compileLook("k", []byte("v"), 0x1f, requested(opts)) }
	}
	del := func(opts ...Option) func() (transaction, error) {
		return func() (transaction, error) { return compileDelete("k", requested(opts)) }
	}
	prefix := func(p string, opts ...Option) func() (transaction, error) {
		return func() (transaction, error) { return compileDeletePrefix(p, requested(opts)) }
	}
	for _, c := range []struct {
		name    string
		compile func() (transaction, error)
		want    string // or the error
	}{
		{"put", put(), "if [] then [put k=v lease 0] else []"},
		{"leased put", put(Leased()), "if [] then [put k=v lease 1f] else []"},
		{"create", put(IfAbsent()), "if [k CREATE EQUAL 0] then [put k=v lease 0] else []"},
		{
			"update",
			put(IfChanged()),
			`if [] then [if [k VALUE EQUAL "v" and k LEASE EQUAL 0] then [] else [put k=v lease 0]] else []`,
		},
		{
			"everything at once",
			put(Leased(), IfAbsent(), IfChanged(), IfRevision(5), IfValue([]byte("w")), IfOther("o", []byte("1")), IfOther("p", nil), Holding(a), Holding(nil), Holding(b)),
			`if [l/a/1 CREATE EQUAL 7 and l/b/1 CREATE EQUAL 8 and k CREATE EQUAL 0 and k MOD EQUAL 5 and k VALUE EQUAL "w"` +
				` and o VALUE EQUAL "1" and p VALUE EQUAL ""]` +
				` then [if [k VALUE EQUAL "v" and k LEASE EQUAL 1f] then [] else [put k=v lease 1f]] else [get l/a/1, get l/b/1]`,
		},
		{"look", look(IfChanged()), `if [k VALUE EQUAL "v" and k LEASE EQUAL 1f] then [get k] else []`},
		{
			"look under conditions",
			look(IfChanged(), IfOther("o", []byte("1")), Holding(a)),
			`if [l/a/1 CREATE EQUAL 7 and o VALUE EQUAL "1" and k VALUE EQUAL "v" and k LEASE EQUAL 1f] then [get k] else [get l/a/1]`,
		},
		{"revision 0", put(IfRevision(0)), "if [k MOD EQUAL 0] then [put k=v lease 0] else []"},
		{"empty value", put(IfValue(nil)), `if [k VALUE EQUAL ""] then [put k=v lease 0] else []`},
		{"delete", del(), "if [] then [delete k..] else []"},
		{
			"delete under conditions",
			del(IfRevision(5), IfOther("o", []byte("1")), Holding(a)),
			`if [l/a/1 CREATE EQUAL 7 and k MOD EQUAL 5 and o VALUE EQUAL "1"] then [delete k..] else [get l/a/1]`,
		},
		{"delete a prefix", prefix("p/"), "if [] then [delete p/..p0] else []"},
		{"delete a prefix under a lock", prefix("p/", Holding(b)), "if [l/b/1 CREATE EQUAL 8] then [delete p/..p0] else [get l/b/1]"},
		{"delete a whole key", prefix("p"), `kvstore delete prefix "p": a prefix ends in /: give "p/" for all keys below it, or use Delete for the one key`},
		{"delete with a lease", del(Leased()), `kvstore delete "k": Leased, IfAbsent and IfChanged are not for a deletion`},
		{"delete a prefix if changed", prefix("p/", IfChanged()), `kvstore delete prefix "p/": Leased, IfAbsent and IfChanged are not for a deletion`},
		{"delete a prefix of a revision", prefix("p/", IfRevision(1)), `kvstore delete prefix "p/": IfRevision and IfValue are about one key`},
		{"nothing", prefix(""), "kvstore delete prefix: the key is empty"},
	} {
		got, err := c.compile()
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = inWords(got.req)
		}
		if text != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, text, c.want)
		}
	}
}
