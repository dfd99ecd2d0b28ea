package xdsserver

import (
	"net/netip"
	"slices"
	"time"
)

// What is kept of clients whose streams have ended: who looks for the cause of failed calls often comes later.
const (
	departedTime  = 10 * time.Minute
	maxDeparted   = 64
	departedNames = 10 // of each type
)

// departed are streams that have ended, in the order of their ends. Not safe for concurrent use.
type departed []departure

type departure struct {
	Client
	from netip.Addr // an IPv6 /64; invalid for the unix socket
}

// program is a client as it says of itself, at one address.
type program struct {
	from       netip.Addr
	node, name string
}

func (d *departure) program() program { return program{d.from, d.Node, d.Program} }

// add adds a stream that has ended. What the same program had before goes, as programs that start again and again
// would fill the list. Beyond the bound, the address with the most loses its oldest. All programs of the unix
// socket count as one address.
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

// expire forgets those that ended too long ago.
func (d *departed) expire(now time.Time) {
	*d = slices.DeleteFunc(*d, func(o departure) bool { return now.Sub(o.Gone) > departedTime })
}
