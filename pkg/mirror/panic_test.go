package mirror

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/guard"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAPanicOfACopyIsAnError, which ends the session of that remote and not the
// process; the values at hand are not those of the names that come next.
func TestAPanicOfACopyIsAnError(t *testing.T) {
	t.Parallel()
	own := kvstore.NewMemory()
	defer own.Close()
	log := slog.New(slog.DiscardHandler)
	term := &term{Mirror: &Mirror{Params: Params{Log: log}}, outbox: store.NewOutbox(own, nil, nil, nil)}
	f := (&copyOf{term: term, name: "c1", log: log}).newFamily(wire.IPs, nil)
	prefix := wire.IPs.Prefix("c1", false)
	f.values = [][]byte{[]byte("left over")}
	// The mistake: a name is taken of a key that has none.
	h := &hostile{listed: []kvstore.KeyValue{{Key: []byte(prefix + "10.0.0.1"), Value: []byte("v"), ModRevision: 1}, {Key: []byte("short")}}}
	err := f.Run(t.Context(), store.Session{Client: h, Prefix: prefix})
	if p, panicked := errors.AsType[*guard.Panic](err); !panicked {
		t.Fatalf("%v, %v", err, p)
	}
	if len(f.values) != 1 || string(f.values[0]) != "v" {
		t.Errorf("the values at hand are %q", f.values)
	}
}
