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

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
)

// contents are the keys of an etcd with their decoded values, as JSON if they are JSON, without the times of writing.
type contents map[string]any

func read(t *testing.T, etcd *etcdtest.Process) contents {
	t.Helper()
	resp, err := etcd.Client(t).Get(t.Context(), "cilium/", clientv3.WithPrefix())
	interop.Must(t, err)
	all := make(contents, len(resp.Kvs))
	for _, kv := range resp.Kvs {
		switch key := string(kv.Key); {
		case key == wire.HeartbeatKey, strings.HasPrefix(key, wire.OperatorLockPath):
		case strings.HasPrefix(key, wire.SyncedPrefix):
			all[key] = "written"
		default:
			all[key] = said(t, key, kv.Value)
		}
	}
	return all
}

// said returns the decoded value.
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

// withoutBackends reports whether v is a service without backends.
func withoutBackends(v any) bool {
	service, is := v.(map[string]any)
	backends, has := service["backends"].(map[string]any)
	return is && has && len(backends) == 0
}

// says reports whether one value has everything that all has; a missing field and an empty one are the same.
func says(one, all any) bool {
	switch all := all.(type) {
	case nil:
		return true
	case map[string]any:
		has, is := one.(map[string]any)
		for field, v := range all {
			if !says(has[field], v) {
				return false
			}
		}
		return is || len(all) == 0
	case []any:
		has, _ := one.([]any)
		for i, v := range all {
			if i >= len(has) || !says(has[i], v) {
				return false
			}
		}
		return len(has) == len(all)
	}
	return one == all
}

// without removes the resources that a release neither writes nor reads.
func (c contents) without(of ...wire.Resource) {
	for _, r := range of {
		maps.DeleteFunc(c, func(key string, _ any) bool { return strings.Contains(key, r.StorePrefix(false)) })
	}
}

// likeLater removes entries and fields that current releases no longer read: services that are not shared, and numbers
// of nodes.
func (c contents) likeLater() {
	for key, v := range c {
		if service, is := v.(map[string]any); is && strings.HasPrefix(key, wire.Services.StorePrefix(false)) && service["shared"] == false {
			delete(c, key)
		}
		if node, is := v.(map[string]any); is && strings.HasPrefix(key, wire.Nodes.StorePrefix(false)) {
			delete(node, "NodeIdentity")
		}
	}
}

// difference is a key with two different values, or that only one side has.
type difference struct{ key, text string }

// differences compares Cilium's contents with ours. For an earlier release, ours may have more fields.
func differences(theirs, ours contents, earlier bool) (all []difference) {
	keys := maps.Clone(theirs)
	maps.Copy(keys, ours)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		their, is := theirs[key]
		our, too := ours[key]
		switch {
		case !is && earlier && withoutBackends(our): // releases before 1.18 do not publish a service without backends
		case !is:
			all = append(all, difference{key, fmt.Sprintf("only we have it: %v", our)})
		case !too:
			all = append(all, difference{key, fmt.Sprintf("only Cilium has it: %v", their)})
		default:
			if earlier && says(our, their) {
				continue
			}
			if text := cmp.Diff(their, our); text != "" {
				all = append(all, difference{key, "Cilium's (-) and ours (+):\n" + text})
			}
		}
	}
	return all
}
