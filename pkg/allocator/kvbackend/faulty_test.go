package kvbackend_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// errInjected is the error of an injected fault.
var errInjected = errors.New("injected")

// faulty is a kvstore with a hook before and after every operation. An operation that fails before has not been done.
// An operation that fails after has been done, but its response is lost.
type faulty struct {
	kvstore.Writer
	hook func(point string) error
}

// around calls the hook before and after an operation.
func (f *faulty) around(op string, do func() error) error {
	if err := f.hook("before " + op); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return f.hook("after " + op)
}

func (f *faulty) Put(ctx context.Context, key string, value []byte, opts ...kvstore.Option) (r kvstore.Result, err error) {
	err = f.around("put "+kindOf(key), func() error {
		r, err = f.Writer.Put(ctx, key, value, opts...)
		return err
	})
	return r, err
}

func (f *faulty) Delete(ctx context.Context, key string, opts ...kvstore.Option) (r kvstore.Result, err error) {
	err = f.around("delete "+kindOf(key), func() error {
		r, err = f.Writer.Delete(ctx, key, opts...)
		return err
	})
	return r, err
}

func (f *faulty) Get(ctx context.Context, key string, opts ...kvstore.ReadOption) (kv *kvstore.KeyValue, at kvstore.Position, err error) {
	err = f.around("get "+kindOf(key), func() error {
		kv, at, err = f.Writer.Get(ctx, key, opts...)
		return err
	})
	return kv, at, err
}

func (f *faulty) List(
	ctx context.Context, prefix string, page func(kvstore.Page) error, opts ...kvstore.ReadOption,
) (at kvstore.Position, err error) {
	err = f.around("list "+kindOf(prefix), func() error {
		at, err = f.Writer.List(ctx, prefix, page, opts...)
		return err
	})
	return at, err
}

// Lock releases the lock when it fails after the lock was acquired, as a client does.
func (f *faulty) Lock(ctx context.Context, path string) (l *kvstore.Lock, err error) {
	err = f.around("lock", func() error {
		l, err = f.Writer.Lock(ctx, path)
		return err
	})
	if err != nil && l != nil {
		l.Unlock()
		l = nil
	}
	return l, err
}

// kindOf returns the kind of a key, for the name of a point.
func kindOf(key string) string {
	switch {
	case len(key) < len(base)+4:
		return "key"
	default:
		return key[len(base)+1 : len(base)+3]
	}
}

// cable is the connections of a client. Cutting them is permanent, and has the same effect as kill -9 of the client.
type cable struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (c *cable) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil, fmt.Errorf("dialing %s: the cable is cut", addr)
	}
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, network, addr)
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}
