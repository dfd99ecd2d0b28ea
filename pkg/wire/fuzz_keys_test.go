package wire

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func FuzzParseSyncedName(f *testing.F) {
	for _, r := range Resources() {
		f.Add(r.StorePrefix(false))
		f.Add(r.StorePrefix(true))
	}
	f.Fuzz(func(t *testing.T, name string) {
		if r, cached, ok := ParseSyncedName(name); ok {
			same(t, "key", SyncedKey("c2", r, cached), SyncedDir("c2")+name)
		}
	})
}

func FuzzDecodeIdentityName(f *testing.F) {
	for _, s := range []string{"131072", "0131089", "0x20012", "131091/x", "0", "", "4294967296", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		id, err := DecodeIdentityName(name, cluster2)
		if err != nil {
			checkRejected(t, err)
			return
		}
		if strings.TrimLeft(name, "0") != strconv.Itoa(int(id)) {
			t.Fatalf("%q reads as %d", name, id)
		}
	})
}

func FuzzParseReferenceName(f *testing.F) {
	f.Add("k8s:a=b;/192.168.2.10")
	f.Add("k8s:a=b/c;/fd00::1")
	f.Fuzz(func(t *testing.T, name string) {
		labels, node, ok := ParseReferenceName(name)
		if ok && (labels+"/"+node != name || strings.Contains(node, "/")) {
			t.Fatalf("%q reads as %q and %q", name, labels, node)
		}
	})
}

func FuzzDecodeAllocatedID(f *testing.F) {
	f.Add("131072")
	f.Add("007")
	f.Add("0")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := DecodeAllocatedID(text)
		if err == nil && string(EncodeAllocatedID(id)) != strings.TrimLeft(text, "0") {
			t.Fatalf("%q reads as %d", text, id)
		}
	})
}

func FuzzJoin(f *testing.F) {
	f.Add("cilium/", "/state", "x//")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		got := Join(a, b, c)
		if strings.Contains(got, "//") || strings.HasSuffix(got, "/") || Join(got) != got {
			t.Fatalf("joined as %q", got)
		}
		if strings.ReplaceAll(got, "/", "") != strings.ReplaceAll(a+b+c, "/", "") {
			t.Fatalf("%q is not %q, %q and %q", got, a, b, c)
		}
		ScopeFromKey(a)
	})
}

func FuzzValidateClusterName(f *testing.F) {
	for _, c := range golden[[]rule[string, string]](f, "cluster_names.json") {
		f.Add(c.Input)
	}
	pattern := regexp.MustCompile(`\A([a-z0-9][-a-z0-9]*)?[a-z0-9]\z`)
	f.Fuzz(func(t *testing.T, name string) {
		want := len(name) >= 1 && len(name) <= 32 && pattern.MatchString(name)
		if err := ValidateClusterName(name); (err == nil) != want {
			t.Fatalf("%q: %v", name, err)
		}
	})
}

// TestRangesOfClustersFollowEachOther: the range of every cluster begins where the previous one ends.
func TestRangesOfClustersFollowEachOther(t *testing.T) {
	t.Parallel()
	for _, limit := range []uint32{255, 511} {
		l, err := NewLayout(limit)
		must(t, err)
		_, end := l.Range(0)
		for c := uint32(1); c <= limit; c++ {
			lo, hi := l.Range(c)
			if lo != end+1 || !l.Contains(c, lo) || !l.Contains(c, hi) {
				t.Fatalf("range of cluster %d of %d is %d to %d", c, limit, lo, hi)
			}
			end = hi
		}
		if end != 1<<24-1 {
			t.Errorf("the last range of %d ends at %d", limit, end)
		}
	}
}

func TestAPairMadeFromAPrefixHasItsName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"10.9.0.0/16", "10.9.0.1/32", "fd09::/64", "0.0.0.0/0", "::/0"} {
		p := NewPrefixPair(netip.MustParsePrefix(text))
		same(t, "name", p.Name(), text)
		if _, err := DecodeIP(text, p.Encode(), cluster2); err != nil {
			t.Error(err)
		}
	}
}
