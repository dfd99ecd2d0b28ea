package xdsserver_test

import (
	"fmt"
	"testing"
)

// TestUnmodifiedClient: xds.md E 1, 2.
func TestUnmodifiedClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port, _, _ := backend(t, "127.0.0.2:0")
	other, _, _ := backend(t, "127.0.0.3:0")
	w.Play(t, fmt.Sprintf("service own shop/cart ports=http:80 127.0.0.2,ports=http:%s\nservice east shop/cart 127.0.0.3,ports=http:%s", port, other))
	for _, name := range []string{"shop/cart:http", "shop/cart:80", "shop/cart", "cart.shop.svc.clusterset.local:http", "cart.shop.svc.clusterset.local"} {
		t.Run(name, func(t *testing.T) {
			c := w.dial("xds:///" + name)
			c.until("both clusters to answer", "127.0.0.2", "127.0.0.3")
		})
	}
}
