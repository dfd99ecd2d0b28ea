package memory

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func second(_ kvstore.Result, err error) error { return err }

// increment reads a counter and writes it, both under the lock.
func increment(ctx context.Context, w kvstore.Writer, l *kvstore.Lock) error {
	kv, _, err := w.Get(ctx, "counter", kvstore.Holding(l))
	if err != nil {
		return err
	}
	n := 0
	if kv != nil {
		if n, err = strconv.Atoi(string(kv.Value)); err != nil {
			return err
		}
	}
	_, err = w.Put(ctx, "counter", []byte(strconv.Itoa(n+1)), kvstore.Holding(l))
	return err
}
