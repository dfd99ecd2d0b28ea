package etcd

import (
	"context"
	"net"
	"sync"
)

// cutter is a network whose connections can be cut.
type cutter struct {
	mu    sync.Mutex
	conns []net.Conn
	total int
	to    string // the address to connect to instead of the dialled one; empty: the dialled one
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c.mu.Lock()
	if c.to != "" {
		addr = c.to
	}
	c.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	c.total++
	return conn, nil
}

// cut closes all connections.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// redirect sends the next connections to another address.
func (c *cutter) redirect(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = addr
}

// count returns the number of connections that were made.
func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}
