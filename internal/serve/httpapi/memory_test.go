package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

// heap is the memory in use after a garbage collection, and its largest growth.
type heap struct{ before, most uint64 }

func (h *heap) measure() {
	var m runtime.MemStats
	for range 2 { // the second collection finds objects that were dropped during the first one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	if h.before == 0 {
		h.before = m.HeapAlloc
	}
	h.most = max(h.most, m.HeapAlloc)
}

func (h *heap) growth() uint64 { return h.most - h.before }

// buffers is how much the kernel may buffer of a connection, so that a server soon waits for its reader.
const buffers = 64 << 10

// readSlowly asks for all addresses over a real connection and reads the answer piece by piece. Between the pieces it
// reads nothing, like a reader that is slower than any server, and measures.
func (f *fixture) readSlowly(tb testing.TB, h *heap, pieces int64) (bytes int64) {
	tb.Helper()
	server := httptest.NewUnstartedServer(f.Handler())
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(buffers); err != nil {
			tb.Error(err)
		}
		return ctx
	}
	server.Start()
	defer server.Close()
	client := server.Client()
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return c, c.(*net.TCPConn).SetReadBuffer(buffers)
	}
	resp, err := client.Get(server.URL + "/v1/ips")
	must(tb, err)
	defer resp.Body.Close()
	for {
		n, err := io.CopyN(io.Discard, resp.Body, pieces)
		if bytes += n; err == io.EOF {
			return bytes
		}
		must(tb, err)
		h.measure()
	}
}

// walk reads all addresses page by page, and measures after each tenth.
func (f *fixture) walk(tb testing.TB, h *heap, limit int) (items int) {
	tb.Helper()
	server := httptest.NewServer(f.Handler())
	defer server.Close()
	cursor := ""
	for n := 0; ; n++ {
		resp, err := server.Client().Get(fmt.Sprint(server.URL, "/v1/ips?limit=", limit, "&cursor=", cursor))
		must(tb, err)
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var page struct{ Next string }
		// The items are counted, not decoded: they would be the client's heap.
		if err2 := json.Unmarshal(append([]byte("{"), body[bytes.LastIndex(body, []byte(`"next":`)):]...), &page); err != nil || err2 != nil {
			tb.Fatal(err, err2)
		}
		items += bytes.Count(body, []byte("\n{"))
		if n%10 == 0 {
			h.measure()
		}
		if cursor = page.Next; cursor == "" {
			return items
		}
	}
}

// heapBound is how much a list of any length may need: the buffers of both ends of the connection, which are in this
// process, and the objects that the first request makes. A quarter of a MiB was seen. 200,000 addresses are 38 MiB as
// text.
const heapBound = 8 << 20

// TestListsNeedNoMemory is not parallel: it measures the heap.
func TestListsNeedNoMemory(t *testing.T) {
	heaptest.Long(t)
	const n = 200_000
	f := newFixture(t)
	f.fillIPs(n)
	f.View.Snapshot(context.Background()) // makes the snapshot
	for name, read := range map[string]func(t *testing.T, h *heap){
		"for a slow reader": func(t *testing.T, h *heap) {
			if size := f.readSlowly(t, h, 4<<20); size < int64(n)*150 {
				t.Fatalf("only %d bytes", size)
			}
		},
		"by pages": func(t *testing.T, h *heap) {
			if items := f.walk(t, h, 1000); items != n {
				t.Fatalf("%d items, want %d", items, n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h heap
			h.measure()
			read(t, &h)
			t.Logf("the heap grew by %d KiB at most", h.growth()>>10)
			if bound := uint64(heapBound + 1000*400); h.growth() > bound { // and one page, which the test reads at once
				t.Errorf("the heap grew by %d KiB, at most %d are allowed", h.growth()>>10, bound>>10)
			}
		})
	}
}

// BenchmarkListMillion measures the same with a million addresses.
func BenchmarkListMillion(b *testing.B) {
	const n = 1_000_000
	f := newFixture(b)
	f.fillIPs(n)
	f.View.Snapshot(context.Background())
	measure := func(name string, read func(b *testing.B, h *heap)) {
		b.Run(name, func(b *testing.B) {
			var h heap
			h.measure()
			for b.Loop() {
				read(b, &h)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/item")
			b.ReportMetric(float64(h.growth())/(1<<10), "heap-KiB")
		})
	}
	measure("slow-reader", func(b *testing.B, h *heap) {
		size := f.readSlowly(b, h, 16<<20)
		b.ReportMetric(float64(size)/(1<<20), "answer-MiB")
		if h.growth() > heapBound {
			b.Errorf("the heap grew by %d KiB, at most %d are allowed", h.growth()>>10, heapBound>>10)
		}
	})
	measure("pages-of-1000", func(b *testing.B, h *heap) {
		if items := f.walk(b, h, 1000); items != n {
			b.Fatalf("%d items, want %d", items, n)
		}
	})
}
