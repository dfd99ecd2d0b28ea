package xdsserver

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// TestDeparted: a client that connects and leaves thousands of times, under one name or under many, leaves the others
// in the list.
func TestDeparted(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	shop, hostile, loop := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	var d departed
	names := make([]string, 1000)
	for n := range 5 {
		d.add(Client{Node: fmt.Sprint("shopper-", n), Gone: now, Follows: []Following{{Names: names}}}, shop)
	}
	for n := range 5000 {
		d.add(Client{Node: fmt.Sprint("hostile-", n), Gone: now.Add(time.Minute)}, hostile)
		d.add(Client{Node: "loop", Number: uint64(n), Gone: now.Add(2 * time.Minute)}, loop)
	}
	of := make(map[netip.Addr]int)
	for _, one := range d {
		of[one.from]++
		if one.from == shop && len(one.Follows[0].Names) != departedNames {
			t.Errorf("%d names are kept", len(one.Follows[0].Names))
		}
	}
	if len(d) != maxDeparted || of[shop] != 5 || of[loop] != 1 {
		t.Errorf("%v", of)
	}
	if last := d[len(d)-1]; last.Node != "loop" || last.Number != 4999 {
		t.Errorf("the last one is %+v", last)
	}
	d.expire(now.Add(departedTime))
	if d[0].Node != "shopper-0" {
		t.Errorf("the first one is %+v", d[0])
	}
	if d.expire(now.Add(departedTime + time.Second)); d[0].from != hostile {
		t.Errorf("the first one is %+v", d[0])
	}
	if d.expire(now.Add(time.Hour)); len(d) != 0 {
		t.Errorf("%d are left", len(d))
	}
}
