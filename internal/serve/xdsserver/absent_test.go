package xdsserver

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
)

func TestWhyNone(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, `
		service east shop/cart 10.1.0.1,ports=http:8080+grpc:9090 10.1.0.2,ports=http:8080+dns:53/UDP
		service east shop/ended 10.1.0.1,state=dead
		service east shop/bare 10.1.0.1,ports=none
		service east shop/many 10.1.0.1,ports=a:1+b:2+c:3+d:4+e:5+f:6+g:7+h:8+i:9+j:10
	`)
	for _, test := range [][3]string{
		{"nothing", "80", "no cluster has the service"},
		{"ended", "http", "no backend of the service takes connections"},
		{"bare", "http", "the backends have no ports"},
		{"cart", "https", "no backend has the TCP port https; the backends have dns 53/UDP, grpc 9090/TCP, http 8080/TCP"},
		{"cart", "", "no backend has one TCP port alone, so the name has to say which; the backends have dns 53/UDP, grpc 9090/TCP, http 8080/TCP"},
		{"many", "80", "no backend has the TCP port 80; the backends have a 1/TCP, b 2/TCP, c 3/TCP, d 4/TCP, e 5/TCP, f 6/TCP, g 7/TCP, h 8/TCP, more"},
	} {
		if got := whyNone(w.View.Services.Find(w.View.DB.ReadTxn(), "shop", test[0], nil), test[1]); got != test[2] {
			t.Errorf("%s:%s: %s", test[0], test[1], got)
		}
	}
}
