//go:build !linux

package ports

import "net"

// Reserve finds an address without a listener; on this system nothing keeps it free.
func Reserve(address string) (*Reserved, error) {
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, err
	}
	return &Reserved{addr: l.Addr().String(), close: func() {}}, l.Close()
}

func reserve(address string, _ bool) (*Reserved, error) { return Reserve(address) }
