package xdsserver

import (
	"net/netip"
	"slices"
	"time"
)

// Bounds of the list of ended streams. The list is kept because the cause of failed calls is often looked for later.
const (
	departedTime  = 10 * time.Minute
	maxDeparted   = 64
	departedNames = 10 // of each type
)

// departed has streams that have ended, in the order of their ends. Not safe for concurrent use.
type departed []departure

type departure struct {
	Client
	from netip.Addr // an IPv6 /64; invalid for the unix socket
}

// program identifies a client by the texts that it reports and its address.
type program struct {
	from       netip.Addr
	node, name string
}

func (d *departure) program() program { return program{d.from, d.Node, d.Program} }

// add adds a stream that has ended. It removes earlier streams of the same program, as programs that restart again and
// again would fill the list. Above the bound, the oldest stream of the address with the most streams is removed. All
// programs of the unix socket count as one address.
func (d *departed) add(c Client, from netip.Addr) {
	one := departure{c, from}
	for i := range one.Follows {
		f := &one.Follows[i]
		f.Names = slices.Clone(f.Names[:min(len(f.Names), departedNames)])
	}
	*d = append(slices.DeleteFunc(*d, func(o departure) bool { return o.program() == one.program() }), one)
	if len(*d) <= maxDeparted {
		return
	}
	number, most := make(map[netip.Addr]int), 0
	for i := range *d {
		number[(*d)[i].from]++
		most = max(most, number[(*d)[i].from])
	}
	oldest := slices.IndexFunc(*d, func(o departure) bool { return number[o.from] == most })
	*d = slices.Delete(*d, oldest, oldest+1)
}

// expire removes streams that ended too long ago.
func (d *departed) expire(now time.Time) {
	*d = slices.DeleteFunc(*d, func(o departure) bool { return now.Sub(o.Gone) > departedTime })
}
