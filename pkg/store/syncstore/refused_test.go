package syncstore

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestRefusedValuesTakeNoRoom: values that are refused do not delay the owner's other values, however many bytes they
// have. They are requested again for each retry, and written as soon as they are accepted.
func TestRefusedValuesTakeNoRoom(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	var most, asked atomic.Int64 // most: the largest value that the kvstore accepts, in bytes
	most.Store(maxHeld / 8)
	w := &refusing{d.mem, func(w kvstore.Write) error {
		if int64(len(w.Value)) > most.Load() {
			return errTooLarge
		}
		return nil
	}}
	large := make([]byte, maxHeld/4)
	var s *Sync
	s = d.through(w, Params{Again: func(names []string) {
		for _, name := range names {
			asked.Add(1)
			s.Supply(name, large)
		}
	}})
	want := map[string]string{"good": "1"}
	for i := range 8 {
		name := fmt.Sprint(i)
		want[name] = string(large)
		s.Put(name, large)
		must(t, s.WaitRoom(waittest.Context(t)))
	}
	s.Put("good", []byte("1"))
	s.Complete()
	must(t, s.WaitName(d.ctx, "good"))
	eventually(t, func() error {
		if st := s.Status(); st.Failed != 8 || st.Pending != 8 || asked.Load() < 16 {
			return fmt.Errorf("asked %d times: %+v", asked.Load(), st)
		}
		return nil
	})
	most.Store(maxHeld)
	d.clean(s)
	d.until("p/", want)
	s.update(func(l *ledger) {
		if l.bytes != 0 || len(l.failures.of) != 0 {
			t.Errorf("%d bytes are held, %d are noted as refused", l.bytes, len(l.failures.of))
		}
	})
}
