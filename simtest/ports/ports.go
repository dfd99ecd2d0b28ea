// Package ports reserves a port for one owner while no server listens on it. Without it, the system could
// give the port to any other connection between two servers on the same address.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Reserved is an address that is kept for its owner until it is released.
type Reserved struct {
	addr  string
	close func()
}

// Addr is the address with its port, "127.0.0.1:12345".
func (r *Reserved) Addr() string { return r.addr }

// Release releases the address. Listeners on it continue. It may be called several times.
func (r *Reserved) Release() { r.close() }

// ReserveBoth reserves a port of 127.0.0.1 whose number is free for UDP too. It is below Linux's ephemeral
// ports, so that the system gives it to no UDP socket later. No other call returns it, in this process or another,
// until it is released.
func ReserveBoth() (*Reserved, error) {
	var problems []error
	for range 100 {
		address := fmt.Sprint("127.0.0.1:", 15000+rand.IntN(15000)) //nolint:gosec // nothing secret
		r, err := reserve(address, true)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		udp, err := net.ListenPacket("udp4", address)
		if err != nil {
			r.Release()
			problems = append(problems, err)
			continue
		}
		return r, udp.Close()
	}
	return nil, errors.Join(problems...)
}
