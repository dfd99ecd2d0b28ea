package dnsserver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// The mesh of the benchmark.
const (
	benchServices = 2000
	benchBackends = 10
	benchChanges  = 1000 // a second
	benchClients  = 16
)

// BenchmarkAnswers asks for the addresses of services over loopback, as fast as the server answers, while services
// change. The floor is the same library with one fixed record. Then it asks at half that rate, to measure how long an
// answer takes.
func BenchmarkAnswers(b *testing.B) {
	w := viewtest.New(b)
	for i := range benchServices {
		w.Apply(benchService(i, 0))
	}
	s := serve(b, dnsserver.Params{View: w.View})
	floor := fixedServer(b)
	var names [][]byte
	for i := range benchServices {
		names = append(names, question(b, fmt.Sprintf("s%d.shop.svc.clusterset.local.", i)))
	}
	ctx, cancel := context.WithCancel(b.Context())
	var changing sync.WaitGroup
	changing.Go(func() {
		for n := 1; waiting.Sleep(ctx, time.Second/100) == nil; n++ {
			for range benchChanges / 100 {
				w.Apply(benchService(rand.IntN(benchServices), n))
			}
		}
	})
	defer changing.Wait()
	defer cancel()
	var ours, fixed float64
	for b.Loop() { // in turns, so that a machine whose speed changes is no advantage to one of them
		for range 3 {
			fixed += flood(b, floor, names)
			ours += flood(b, s.Address(), names)
		}
	}
	b.ReportMetric(fixed/float64(3*b.N), "floor-queries/s")
	b.ReportMetric(ours/float64(3*b.N), "queries/s")
	b.ReportMetric(100*ours/fixed, "%-of-floor")
	b.ReportMetric(0, "ns/op")
	rate := ours / float64(3*b.N) / 2
	bare, half := paced(b, floor, rate), paced(b, s.Address(), rate)
	b.ReportMetric(bare.P99, "floor-p99-ms-at-half")
	b.ReportMetric(half.P50, "median-ms-at-half")
	b.ReportMetric(half.P99, "p99-ms-at-half")
	b.ReportMetric(half.Most, "most-ms-at-half")
	b.ReportMetric(float64(half.Lost), "lost-at-half")
}

func benchService(i, version int) *services.Service {
	s := &services.Service{Cluster: "east", ClusterID: 2, Source: wire.SourceClusterMesh, Shared: true, Namespace: "shop", Name: fmt.Sprint("s", i)}
	for n := range benchBackends {
		ip := netip.AddrFrom4([4]byte{10, byte(version), byte(i), byte(n)})
		s.Backends = append(s.Backends, services.Backend{IP: ip, Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 8080}}})
	}
	return s
}

// fixedServer answers everything with one record.
func fixedServer(b *testing.B) string {
	b.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	waittest.Must(b, err)
	record, err := dns.NewRR("s.shop.svc.clusterset.local. 5 IN A 10.0.0.1")
	waittest.Must(b, err)
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		m.Answer = []dns.RR{record}
		_ = w.WriteMsg(m)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.ActivateAndServe() }()
	b.Cleanup(func() {
		_ = server.Shutdown()
		<-ended
	})
	return conn.LocalAddr().String()
}

func question(b *testing.B, name string) []byte {
	b.Helper()
	q := new(dns.Msg)
	q.SetQuestion(name, dns.TypeA)
	wire, err := q.Pack()
	waittest.Must(b, err)
	return wire
}

// flood asks from several clients, each of which sends its next question after an answer. It returns the number of
// answers in a second.
func flood(b *testing.B, address string, questions [][]byte) float64 {
	b.Helper()
	const lasts = time.Second
	var answers atomic.Int64
	var clients sync.WaitGroup
	began := time.Now()
	for range benchClients {
		conn := dial(b, address)
		clients.Go(func() {
			defer conn.Close()
			buffer := make([]byte, 4096)
			for time.Since(began) < lasts {
				if _, err := exchange(conn, questions[rand.IntN(len(questions))], buffer); err == nil {
					answers.Add(1)
				}
			}
		})
	}
	clients.Wait()
	return float64(answers.Load()) / time.Since(began).Seconds()
}

func dial(b *testing.B, address string) net.Conn {
	b.Helper()
	conn, err := net.Dial("udp", address)
	waittest.Must(b, err)
	return conn
}

func exchange(conn net.Conn, question, buffer []byte) (int, error) {
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, err
	}
	if _, err := conn.Write(question); err != nil {
		return 0, err
	}
	return conn.Read(buffer)
}
