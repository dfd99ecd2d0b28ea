package ports

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
)

// Reserve binds an IPv4 address ("127.0.0.1:0" for a free port) without listening: connections are
// refused, the system gives the port to no other socket, and a server that names the port can listen on it.
func Reserve(address string) (*Reserved, error) { return reserve(address, false) }

// reserve with alone accepts only an address without another reservation.
func reserve(address string, alone bool) (*Reserved, error) {
	want, err := netip.ParseAddrPort(address)
	if err == nil && !want.Addr().Is4() {
		err = fmt.Errorf("%s is no IPv4 address", address)
	}
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	// Only once: afterwards the number may be that of another file.
	r := &Reserved{close: sync.OnceFunc(func() { _ = syscall.Close(fd) })}
	bound, err := bind(fd, want, alone)
	if err != nil {
		r.Release()
		return nil, &net.OpError{Op: "reserve", Net: "tcp4", Addr: net.TCPAddrFromAddrPort(want), Err: err}
	}
	r.addr = bound.String()
	return r, nil
}

// bind lets others bind the same address by name, like listeners of the net package. With alone it does so only after
// it is bound itself, because two sockets that both allow it can bind the same address while neither listens.
func bind(fd int, want netip.AddrPort, alone bool) (netip.AddrPort, error) {
	if !alone {
		if err := share(fd); err != nil {
			return netip.AddrPort{}, err
		}
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: want.Addr().As4(), Port: int(want.Port())}); err != nil {
		return netip.AddrPort{}, os.NewSyscallError("bind", err)
	}
	if err := share(fd); err != nil {
		return netip.AddrPort{}, err
	}
	is, err := syscall.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockname", err)
	}
	return netip.AddrPortFrom(want.Addr(), uint16(is.(*syscall.SockaddrInet4).Port)), nil //nolint:gosec // a port
}

func share(fd int) error {
	return os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
}
