package mirror

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cenkalti/backoff/v5"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// leftovers names the clusters of which something is in the cache. Whoever removed
// one may not have come to the end, and keys whose writer lives do not end with a
// lease. It is asked late: whoever fills the mesh directory may not be done when we
// start. It is tried until it succeeds, or ctx ends.
func (t *term) leftovers(ctx context.Context) ([]string, error) {
	if t.KeepRemoved {
		return nil, nil
	}
	if err := waiting.Sleep(ctx, t.DrainDelay); err != nil {
		return nil, err
	}
	pause := backoff.NewExponentialBackOff()
	for {
		names, err := t.cached(ctx)
		if err == nil || ctx.Err() != nil {
			return names, ctx.Err()
		}
		t.Log.Warn("Cannot tell which clusters have been copied before, trying again", "error", err)
		if err := waiting.Sleep(ctx, pause.NextBackOff()); err != nil {
			return nil, err
		}
	}
}

// cached are the names of all clusters that have keys in the cache, or canaries.
func (t *term) cached(ctx context.Context) ([]string, error) {
	found := make(map[string]bool)
	prefixes := []string{wire.SyncedPrefix + "/"}
	for _, r := range wire.Resources() {
		prefixes = append(prefixes, r.StorePrefix(true)+"/")
	}
	at, err := t.Writer.Head(ctx)
	if err != nil {
		return nil, err
	}
	for _, prefix := range prefixes {
		// One key of each cluster is enough: from there to what follows its last one.
		for from := ""; ; {
			past, err := t.Writer.Recall(ctx, prefix, from, at, 1)
			if err != nil {
				return nil, err
			}
			if len(past.Items) == 0 {
				break
			}
			name, _, _ := strings.Cut(string(past.Items[0].Key[len(prefix):]), "/")
			found[name] = true
			from = prefix + name + "0" // what follows the slash
		}
	}
	delete(found, t.Local.Name) // its canaries are those of what operates it
	return slices.Sorted(maps.Keys(found)), nil
}
