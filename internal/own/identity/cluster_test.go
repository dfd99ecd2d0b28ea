package identity

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func layout(t *testing.T, n uint32) wire.Layout {
	t.Helper()
	l, err := wire.NewLayout(n)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTheRangeIsTheClusters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		clusters, id, first, last uint32
	}{
		{255, 0, 256, 65535},
		{255, 2, 131072, 196607},
		{255, 255, 16711680, 16777215},
		{511, 0, 256, 32767},
		{511, 2, 65536, 98303},
		{511, 511, 16744448, 16777215},
	} {
		first, last := Owner{ID: c.id, Layout: layout(t, c.clusters)}.Range()
		if first != c.first || last != c.last {
			t.Errorf("cluster %d of %d: %d to %d, want %d to %d", c.id, c.clusters, first, last, c.first, c.last)
		}
	}
}

func TestWhatIsWrongWithAClusterIsSaid(t *testing.T) {
	t.Parallel()
	good := Owner{Name: "east", ID: 2}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]Owner{
		"cluster name":                    {Name: "East", ID: 2},
		"the cluster ID 256 is above 255": {Name: "east", ID: 256},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", c, err, want)
		}
	}
}

func TestReservedLabelsAreNotAllocated(t *testing.T) {
	t.Parallel()
	c := Owner{Name: "east"}
	for text, want := range map[string]uint32{
		"reserved:host=;":      wire.IdentityHost,
		"$world":               wire.IdentityWorld,
		"reserved:world-ipv6=": wire.IdentityWorldIPv6,
	} {
		if id, reserved, err := c.Reserved(wire.ParseLabels(text)); id != want || !reserved || err != nil {
			t.Errorf("%s: %d, %v, %v; want %d", text, id, reserved, err, want)
		}
	}
	for _, text := range []string{"k8s:app=x;", "", "unspec:host=;"} {
		if id, reserved, err := c.Reserved(wire.ParseLabels(text)); id != 0 || reserved || err != nil {
			t.Errorf("%s: %d, %v, %v; want none", text, id, reserved, err)
		}
	}
	for _, text := range []string{"reserved:nobody=;", "reserved:unknown=;", "reserved:host=;k8s:app=x;"} {
		if _, _, err := c.Reserved(wire.ParseLabels(text)); !errors.Is(err, ErrLabels) {
			t.Errorf("%s: %v, want %v", text, err, ErrLabels)
		}
	}
}

func TestOwnLabelsNameTheCluster(t *testing.T) {
	t.Parallel()
	c := Owner{Name: "east"}
	const named = "k8s:app=x;k8s:io.cilium.k8s.policy.cluster=east;"
	for _, text := range []string{"k8s:app=x;", named} {
		labels, err := c.Own(wire.ParseLabels(text))
		if err != nil || KeyOf(labels).GetKey() != named {
			t.Errorf("%s became %s, %v", text, labels, err)
		}
	}
	for name, labels := range map[string]wire.Labels{
		"another cluster":               wire.ParseLabels("k8s:io.cilium.k8s.policy.cluster=west;"),
		"another source":                wire.ParseLabels("any:io.cilium.k8s.policy.cluster=east;"),
		"none":                          nil,
		"a label without a key":         {{Source: "k8s", Value: "x"}},
		"a semicolon in a value":        {{Source: "k8s", Key: "a", Value: "b;c"}},
		"a semicolon in a key":          {{Source: "k8s", Key: "a;b", Value: "c"}},
		"an equals sign in a key":       {{Source: "k8s", Key: "a=b", Value: "c"}},
		"a semicolon that ends a value": {{Source: "k8s", Key: "a", Value: "b;"}},
		"a colon in a source":           {{Source: "k8s:x", Key: "a", Value: "b"}},
	} {
		if got, err := c.Own(labels); !errors.Is(err, ErrLabels) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, ErrLabels)
		}
	}
}

func TestTheNodeIsNamedByItsAddress(t *testing.T) {
	t.Parallel()
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1%eth0")
	for _, c := range []struct {
		addresses []netip.Addr
		want      string
	}{
		{[]netip.Addr{four, six}, "10.0.0.1"},
		{[]netip.Addr{six, four}, "10.0.0.1"},
		{[]netip.Addr{six}, "fd00::1"},
		{[]netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")}, "10.0.0.1"},
	} {
		if got, err := NodeSuffix(c.addresses...); got != c.want || err != nil {
			t.Errorf("%v: %q, %v; want %q", c.addresses, got, err, c.want)
		}
	}
	if _, err := NodeSuffix(netip.Addr{}); err == nil {
		t.Error("no address is no error")
	}
}

func TestKeysSurviveAndAreCanonical(t *testing.T) {
	t.Parallel()
	a := KeyOf(wire.ParseLabels("k8s:z=1;k8s:a=2;"))
	b := KeyOf(wire.ParseLabels("k8s:a=2;k8s:z=1;"))
	if a != b || a.GetKey() != "k8s:a=2;k8s:z=1;" {
		t.Errorf("%v and %v", a, b)
	}
	again, err := a.PutKey(a.GetKey())
	if err != nil || again.GetKey() != a.GetKey() {
		t.Errorf("%v, %v", again, err)
	}
	if diff := cmp.Diff(map[string]string{"k8s:a": "2", "k8s:z": "1"}, again.GetAsMap()); diff != "" {
		t.Error(diff)
	}
	again, err = a.PutKeyFromMap(a.GetAsMap())
	if err != nil || again.GetKey() != a.GetKey() || again.String() != a.String() {
		t.Errorf("%v, %v", again, err)
	}
	for _, text := range []string{"", ";;", "k8s:=x;"} {
		if k, err := a.PutKey(text); err == nil {
			t.Errorf("%q is the key %v", text, k)
		}
	}
	if k, err := a.PutKeyFromMap(map[string]string{"k8s:": "x"}); err == nil {
		t.Errorf("no label is the key %v", k)
	}
}
