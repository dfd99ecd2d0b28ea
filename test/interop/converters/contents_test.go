package converters

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/operate"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/test/interop"
)

// contents are the keys of an etcd with what their values say: as JSON where they are, without the times at which
// something was written.
type contents map[string]any

func read(t *testing.T, etcd *etcdtest.Process) contents {
	t.Helper()
	resp, err := etcd.Client(t).Get(t.Context(), "cilium/", clientv3.WithPrefix())
	interop.Must(t, err)
	all := make(contents, len(resp.Kvs))
	for _, kv := range resp.Kvs {
		switch key := string(kv.Key); {
		case key == wire.HeartbeatKey, strings.HasPrefix(key, operate.LockPath):
		case strings.HasPrefix(key, wire.SyncedPrefix):
			all[key] = "written"
		default:
			all[key] = said(t, key, kv.Value)
		}
	}
	return all
}

// said is what a value says.
func said(t *testing.T, key string, value []byte) any {
	t.Helper()
	if strings.HasPrefix(key, wire.EndpointSlices.StorePrefix(false)) {
		reader, err := zstd.NewReader(nil)
		interop.Must(t, err)
		defer reader.Close()
		value, err = reader.DecodeAll(value, nil)
		interop.Must(t, err)
	}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return string(value)
	}
	return v
}

// difference is a key whose value is not the same, or that only one of both has.
type difference struct{ key, text string }

// differences are those between what Cilium wrote and what we did.
func differences(theirs, ours contents) (all []difference) {
	keys := maps.Clone(theirs)
	maps.Copy(keys, ours)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		their, is := theirs[key]
		our, too := ours[key]
		switch {
		case !is:
			all = append(all, difference{key, fmt.Sprintf("only we have it: %v", our)})
		case !too:
			all = append(all, difference{key, fmt.Sprintf("only Cilium has it: %v", their)})
		default:
			if text := cmp.Diff(their, our); text != "" {
				all = append(all, difference{key, "Cilium's (-) and ours (+):\n" + text})
			}
		}
	}
	return all
}
