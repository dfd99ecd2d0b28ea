package consumers

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// server is a backend, or the exporter of a node's metrics.
type server struct {
	http     *http.Server
	requests atomic.Int64
}

// serve opens a server on an address, at the common port. It answers with its address.
func (w *world) serve(ip string) {
	w.t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(int(w.port))))
	must(w.t, err)
	s := new(server)
	s.http = &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.URL.Path == "/metrics" {
			_, _ = fmt.Fprintf(rw, "# TYPE backend_requests counter\nbackend_requests{ip=%q} %d\n", ip, s.requests.Load())
			return
		}
		_, _ = rw.Write([]byte(ip))
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.http.Serve(l) // until it is closed
	}()
	w.servers[ip] = s
	w.t.Cleanup(func() {
		_ = s.http.Close()
		<-ended
	})
}

// crash closes a server with all its connections.
func (w *world) crash(ip string) {
	w.t.Helper()
	must(w.t, w.servers[ip].http.Close())
	delete(w.servers, ip)
}
