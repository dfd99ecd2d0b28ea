package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestGoldenJoin(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]rule[[]string, string]](t, "join_key.json") {
		same(t, fmt.Sprintf("%q", c.Input), Join(c.Input...), c.Output)
	}
}

func TestGoldenScopeFromKey(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]rule[string, string]](t, "metric_scope_from_key.json") {
		same(t, c.Input, ScopeFromKey(c.Input), c.Output)
	}
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resource             Resource
		state, cache, canary string
	}{
		{Nodes, "cilium/state/nodes/v1/c2/", "cilium/cache/nodes/v1/c2/", "cilium/state/nodes/v1"},
		{Services, "cilium/state/services/v1/c2/", "cilium/cache/services/v1/c2/", "cilium/state/services/v1"},
		{
			EndpointSlices, "cilium/state/endpointslices/v1/c2/", "cilium/cache/endpointslices/v1/c2/",
			"cilium/state/endpointslices/v1",
		},
		{
			ServiceExports, "cilium/state/serviceexports/v1/c2/", "cilium/cache/serviceexports/v1/c2/",
			"cilium/state/serviceexports/v1",
		},
		{Identities, "cilium/state/identities/v1/id/", "cilium/cache/identities/v1/c2/id/", "cilium/state/identities/v1"},
		{IPs, "cilium/state/ip/v1/default/", "cilium/cache/ip/v1/c2/", "cilium/state/ip/v1"},
	} {
		same(t, "state", c.resource.Prefix("c2", false), c.state)
		same(t, "cache", c.resource.Prefix("c2", true), c.cache)
		same(t, "canary", SyncedKey("c2", c.resource, false), "cilium/synced/c2/"+c.canary)
		same(t, "cached canary", SyncedKey("c2", c.resource, true), "cilium/synced/c2/"+strings.Replace(c.canary, "state", "cache", 1))
		for _, cached := range []bool{false, true} {
			name := strings.TrimPrefix(SyncedKey("c2", c.resource, cached), SyncedDir("c2"))
			if r, fromCache, ok := ParseSyncedName(name); !ok || r != c.resource || fromCache != cached {
				t.Errorf("canary %s reads as %s, %v, %v", name, r, fromCache, ok)
			}
		}
	}
	if len(Resources()) != 6 {
		t.Error("a resource is missing from this test")
	}
}

func TestCanariesOfUnknownPrefixesAreNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "cilium/state/unknown/v1", "cilium/state/ip/v1/default", "cilium/state/identities/v1/id",
		"cilium/state/nodes/v1/",
	} {
		if r, _, ok := ParseSyncedName(name); ok {
			t.Errorf("%q reads as %s", name, r)
		}
	}
}

func TestIdentityReferenceNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"k8s:a=b;/192.168.2.10": {"k8s:a=b;", "192.168.2.10"},
		"k8s:a/b=c/d;/fd00::1":  {"k8s:a/b=c/d;", "fd00::1"},
		"k8s:a=b;":              {},
		"k8s:a=b;/":             {},
		"/192.168.2.10":         {},
		"":                      {},
	} {
		labels, node, ok := ParseReferenceName(name)
		if [2]string{labels, node} != want || ok != (want[0] != "") {
			t.Errorf("%q reads as %q, %q, %v", name, labels, node, ok)
		}
	}
	if _, err := DecodeAllocatedID("x"); checkRejected(t, err).Reason != ReasonMalformed {
		t.Error(err)
	}
	same(t, "prefix", IdentityAllocation.ReferencesOf("k8s:a=b//c;"), "cilium/state/identities/v1/value/k8s:a=b/c;/")
}

func TestTimestampsAreInTheWritersZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.FixedZone("", 3600))
	same(t, "heartbeat", string(EncodeTimestamp(at)), "2026-03-04T05:06:07+01:00")
}
