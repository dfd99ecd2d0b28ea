package clustermesh

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Lister lists keys, as [kvstore.Client] does.
type Lister interface {
	List(ctx context.Context, prefix string, page func(kvstore.Page) error, opts ...kvstore.ReadOption) (kvstore.Position, error)
}

// Audited is the effect that a claim policy would have on one resource of a cluster.
type Audited struct {
	Resource wire.Resource
	Keys     int // number of keys that were read
	Refused  int // number of keys that the policy refuses
	// Key is one of the refused keys, Why the reason.
	Key, Why string
	// Err is why not all keys were checked.
	Err error
}

// Audit returns which entries of a cluster a policy refuses, resource by resource, as an
// agent with this policy would. Entries that are refused for other reasons are not counted
// as refused. A resource is not read to the end if the cluster exceeds its budget.
func Audit(ctx context.Context, client Lister, policy *claims.Policy, e wire.Expect, caps wire.Capabilities, b budget.Budget) []Audited {
	v := &Ingest{Tables: new(Tables), Granted: new(claims.Current), layout: e.Layout, slices: wire.NewSliceDecoder()}
	v.Granted.Set(policy)
	var all []Audited
	for _, f := range v.feeds() {
		if caps.Exports(f.resource) {
			all = append(all, audit(ctx, client, f.resource, f.resource.Prefix(e.Cluster, caps.Cached), f.check(e), b))
		}
	}
	return all
}

func audit(ctx context.Context, client Lister, r wire.Resource, prefix string, check func(string, []byte) error, b budget.Budget) Audited {
	a := Audited{Resource: r}
	share, bytes := b.Share(r), int64(0)
	if b.List > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.List)
		defer cancel()
	}
	_, a.Err = client.List(ctx, prefix, func(page kvstore.Page) error {
		for _, kv := range page.Items {
			a.Keys++
			bytes += int64(len(kv.Key) + len(kv.Value))
			if share.Keys > 0 && a.Keys > share.Keys || share.Bytes > 0 && bytes > share.Bytes {
				return fmt.Errorf("they exceed the budget of a cluster (%d keys, %d bytes)", share.Keys, share.Bytes)
			}
			if b.Value > 0 && int64(len(kv.Value)) > b.Value {
				continue // refused because of its size
			}
			err := check(strings.TrimPrefix(string(kv.Key), prefix), kv.Value)
			if no, is := errors.AsType[*wire.RejectError](err); is && no.Reason == wire.ReasonPolicy {
				if a.Refused++; a.Refused == 1 {
					a.Key, a.Why = string(kv.Key), no.Err.Error()
				}
			}
		}
		return nil
	})
	return a
}
