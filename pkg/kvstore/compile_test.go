package kvstore

import (
	"fmt"
	"strings"
	"testing"
)

// inWords renders a transaction in words.
func inWords(txn Txn) string {
	conditions := make([]string, len(txn.If))
	for i, c := range txn.If {
		conditions[i] = c.Key + " " + map[ConditionKind]string{
			ValueIs: fmt.Sprintf("VALUE EQUAL %q", c.Value), CreatedAt: fmt.Sprintf("CREATE EQUAL %d", c.Number),
			ChangedAt: fmt.Sprintf("MOD EQUAL %d", c.Number), LeaseIs: fmt.Sprintf("LEASE EQUAL %x", c.Number), Exists: "exists",
		}[c.Kind]
	}
	return fmt.Sprintf("if [%s] then [%s] else [%s]", strings.Join(conditions, " and "), ops(txn.Then), ops(txn.Else))
}

func ops(all []TxnOp) string {
	words := make([]string, len(all))
	for i, op := range all {
		switch op.Kind {
		case OpPut:
			words[i] = fmt.Sprintf("put %s=%s lease %x", op.Key, op.Value, op.Lease)
		case OpDelete:
			words[i] = fmt.Sprintf("delete %s..%s", op.Key, op.End)
		case OpTxn:
			words[i] = inWords(*op.Txn)
		case OpRead:
			words[i] = "get " + op.Key
		}
	}
	return strings.Join(words, ", ")
}

func TestWritesCompileToOneTransaction(t *testing.T) {
	t.Parallel()
	a, b := &Lock{Path: "l/a", Key: "l/a/1", Revision: 7}, &Lock{Path: "l/b", Key: "l/b/1", Revision: 8}
	put := func(opts ...Option) func() (Transaction, error) {
		return func() (Transaction, error) {
			r, lease := requested(opts), int64(0)
			if r.leased {
				lease = 0x1f
			}
			return compilePut("k", []byte("v"), lease, r)
		}
	}
	look := func(opts ...Option) func() (Transaction, error) {
		return func() (Transaction, error) { return compileLook("k", []byte("v"), 0x1f, requested(opts)) }
	}
	del := func(opts ...Option) func() (Transaction, error) {
		return func() (Transaction, error) { return compileDelete("k", requested(opts)) }
	}
	prefix := func(p string, opts ...Option) func() (Transaction, error) {
		return func() (Transaction, error) { return compileDeletePrefix(p, requested(opts)) }
	}
	for _, c := range []struct {
		name    string
		compile func() (Transaction, error)
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
			text = inWords(got.Txn)
		}
		if text != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, text, c.want)
		}
	}
}
