package kvstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var errEmptyKey = errors.New("the key is empty")

// compilePut makes the transaction of a Put. It ties the key to the lease, 0 for none.
func compilePut(key string, value []byte, lease int64, r request) (Transaction, error) {
	t, err := compile("put", key, TxnOp{Kind: OpPut, Key: key, Value: value, Lease: lease}, r)
	if err == nil && r.ifChanged {
		t.Then = []TxnOp{{Kind: OpTxn, Txn: &Txn{If: isSame(key, value, lease), Else: t.Then}}}
	}
	return t, err
}

// isSame returns the conditions for a key that already has the value and the lease of the put.
func isSame(key string, value []byte, lease int64) []Condition {
	return []Condition{{Kind: ValueIs, Key: key, Value: value}, {Kind: LeaseIs, Key: key, Number: lease}}
}

// compileLook makes the transaction that checks whether a Put has nothing to do: all its
// conditions hold, and the key already has the value and the lease. It reads the key, without
// its value, because a member that is behind may answer a transaction without any part.
func compileLook(key string, value []byte, lease int64, r request) (Transaction, error) {
	t, err := compile("put", key, TxnOp{Kind: OpRead, Key: key, KeysOnly: true}, r)
	if err == nil {
		t.If = append(t.If, isSame(key, value, lease)...)
	}
	return t, err
}

func compileDelete(key string, r request) (Transaction, error) {
	if err := r.forPutAlone(); err != nil {
		return Transaction{}, misused("delete", key, err)
	}
	return compile("delete", key, deletion(key, ""), r)
}

func compileDeletePrefix(prefix string, r request) (Transaction, error) {
	const op = "delete prefix"
	if err := r.forPutAlone(); err != nil {
		return Transaction{}, misused(op, prefix, err)
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		return Transaction{}, misused(op, prefix, unfitError(fmt.Sprintf(
			"a prefix ends in /: give %q for all keys below it, or use Delete for the one key", prefix+"/")))
	}
	if r.ifRevision != nil || r.ifValue != nil {
		return Transaction{}, misused(op, prefix, errors.New("IfRevision and IfValue are about one key"))
	}
	return compile(op, prefix, deletion(prefix, SelectionEnd(prefix)), r)
}

// compileUpdate makes the transaction of an Update, with the lease of each write; nil for none.
func compileUpdate(writes []Write, leases []int64, r request) (Transaction, error) {
	do := make([]TxnOp, len(writes))
	for i, w := range writes {
		if w.Delete {
			do[i] = deletion(w.Key, "")
		} else {
			do[i] = TxnOp{Kind: OpPut, Key: w.Key, Value: w.Value}
			if leases != nil {
				do[i].Lease = leases[i]
			}
		}
		if w.Kept != nil {
			do[i] = unlessUnleased(w.Key, do[i])
		}
	}
	t, err := compile("update", writes[0].Key, do[0], r)
	if err == nil {
		t.Then = grouped(do)
	}
	return t, err
}

// unlessUnleased makes a write, except when the key exists and is tied to no lease: then it reads the key.
func unlessUnleased(key string, do TxnOp) TxnOp {
	return TxnOp{Kind: OpTxn, Txn: &Txn{
		If:   []Condition{{Kind: Exists, Key: key}, {Kind: LeaseIs, Key: key}}, // an absent key has the lease 0 as well
		Then: []TxnOp{readKey(key)}, Else: []TxnOp{do},
	}}
}

// unchanged is a key that a write of an Update has not changed; the zero value: it has.
type unchanged struct {
	kept   *KeyValue // it stays as it is ([Write.Kept])
	absent bool      // there was no key to delete
}

// unchangedBy returns what an Update has not changed, for each write.
func unchangedBy(writes []Write, res TxnResult) []unchanged {
	answers := res.Parts
	if len(writes) > updateFlat {
		answers = nil
		for _, group := range res.Parts {
			answers = append(answers, group.Txn.Parts...)
		}
	}
	all := make([]unchanged, len(writes))
	for i, w := range writes {
		made := answers[i]
		if w.Kept != nil {
			made = made.Txn.Parts[0] // the write, or the key that was read
		}
		for _, found := range made.Found {
			all[i].kept = &found.KeyValue
		}
		all[i].absent = made.Kind == OpDelete && made.Deleted == 0
	}
	return all
}

// grouped puts the parts of an Update into nested transactions if there are too many for one.
func grouped(do []TxnOp) []TxnOp {
	if len(do) <= updateFlat {
		return do
	}
	groups := make([]TxnOp, 0, updateGroups)
	for some := range slices.Chunk(do, groupWrites) {
		groups = append(groups, TxnOp{Kind: OpTxn, Txn: &Txn{Then: some}})
	}
	return groups
}

func misused(op, key string, err error) error { return &KeyError{Op: op, Key: key, Err: err} }

// unfitError is the reason why no server can accept a request.
type unfitError string

func (e unfitError) Error() string { return string(e) }

func checkUpdate(writes []Write, r request) error {
	if len(writes) == 0 {
		return misused("update", "", unfitError("there is nothing to write"))
	}
	fail := func(key, why string) error { return misused("update", key, unfitError(why)) }
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

func (r request) forPutAlone() error {
	if r.leased || r.ifAbsent || r.ifChanged {
		return errors.New("Leased, IfAbsent and IfChanged are not for a deletion")
	}
	return nil
}

func compile(op, key string, do TxnOp, r request) (Transaction, error) {
	if key == "" {
		return Transaction{}, misused(op, key, errEmptyKey)
	}
	if r.oneKey {
		return Transaction{}, misused(op, key, unfitError("OneKey is for List, Recall and Watch"))
	}
	t := UnderLocks(r.holding)
	t.Op, t.Key, t.Limited = op, key, true
	t.If, t.Then = append(t.If, r.conditions(key)...), []TxnOp{do}
	return t, nil
}

// conditions are all conditions on keys except IfChanged, which compilePut and compileLook add.
func (r request) conditions(key string) (all []Condition) {
	if r.ifAbsent {
		all = append(all, Condition{Kind: CreatedAt, Key: key})
	}
	if r.ifRevision != nil {
		all = append(all, Condition{Kind: ChangedAt, Key: key, Number: *r.ifRevision})
	}
	if r.ifValue != nil {
		all = append(all, Condition{Kind: ValueIs, Key: key, Value: r.ifValue})
	}
	return append(all, r.ifOther...)
}

// result reads the answer of a write whose locks were held.
func result(res TxnResult, at Position) Result {
	r := Result{Met: res.Succeeded, At: at}
	if res.Succeeded {
		r.count(res)
	}
	return r
}

func (r *Result) count(res TxnResult) {
	for _, part := range res.Parts {
		switch part.Kind {
		case OpPut:
			r.Done = true
		case OpDelete:
			r.Deleted += part.Deleted
			r.Done = r.Done || r.Deleted > 0
		case OpTxn:
			r.count(*part.Txn)
		case OpRead:
		}
	}
}
