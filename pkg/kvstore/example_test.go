package kvstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// A guarded write: it is made only if the key has not changed since it was read.
func ExampleIfRevision() {
	ctx, w := context.Background(), memory.New()
	defer w.Close()
	add := func(word string) error {
		for {
			kv, _, err := w.Get(ctx, "words")
			if err != nil {
				return err
			}
			if kv == nil {
				kv = &kvstore.KeyValue{} // its revision 0 means that the key is absent
			}
			r, err := w.Put(ctx, "words", append(kv.Value, word...), kvstore.IfRevision(kv.ModRevision))
			if err != nil || r.Done {
				return err
			}
			// Another client has written the key meanwhile: read it again.
		}
	}
	fmt.Println(add("one,"), add("two"))
	r, err := w.Put(ctx, "words", nil, kvstore.IfRevision(1))
	fmt.Println("a write after an older read:", r.Done, err)
	kv, _, err := w.Get(ctx, "words")
	fmt.Println(string(kv.Value), err)
	// Output:
	// <nil> <nil>
	// a write after an older read: false <nil>
	// one,two <nil>
}

// A write whose transaction proves that its lock is held.
func ExampleHolding() {
	ctx, w := context.Background(), memory.New()
	defer w.Close()
	lock, err := w.Lock(ctx, "locks/report")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock()
	_, err = w.Put(ctx, "report", []byte("1"), kvstore.Holding(lock))
	fmt.Println("the lock is held:", err)

	w.ExpireLeases() // as if this process had been frozen for too long
	_, err = w.Put(ctx, "report", []byte("2"), kvstore.Holding(lock))
	fmt.Println("the lock is lost:", errors.Is(err, kvstore.ErrLockLeaseExpired))
	kv, _, err := w.Get(ctx, "report")
	fmt.Println("report", string(kv.Value), err)
	// Output:
	// the lock is held: <nil>
	// the lock is lost: true
	// report 1 <nil>
}
