// Package ports keeps a port for one owner while nobody listens on it: between two servers on
// the same address, any other connection on the machine could be given its port.
package ports

// Reserved is an address that stays its owner's until it is released.
type Reserved struct {
	addr  string
	close func()
}

// Addr is the address with its port, "127.0.0.1:12345".
func (r *Reserved) Addr() string { return r.addr }

// Release gives the address back. Listeners on it go on. It may be called several times.
func (r *Reserved) Release() { r.close() }
