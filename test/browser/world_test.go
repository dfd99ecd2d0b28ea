package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// world is simulated clusters, an agent that keeps its address over a restart, and a proxy between it and the browser.
// The proxy has the agent below a path, and can be cut.
type world struct {
	t     *testing.T
	mesh  *sim.Mesh
	agent *agenttest.Process
	flags []string
	xds   string // the socket of the agent's xDS server

	proxy *httptest.Server
	mu    sync.Mutex
	cut   bool
	asked []string // paths with queries, since forget
	under []string // requests without a complete answer; a stream never has one
}

// below is the path of the agent at the proxy.
const below = "/some/mesh"

// newWorld starts clusters and the agent, and waits until it has read them.
func newWorld(t *testing.T, clusters ...contents.Cluster) *world {
	t.Helper()
	chromium(t) // it skips the test without a browser
	w := &world{t: t, mesh: meshtest.Run(t, clusters...), xds: t.TempDir() + "/x"}
	api, dns := programtest.Reserve(t), programtest.Reserve(t)
	w.flags = []string{"--cluster-name", "home", "--cluster-id", "254", "--listen", api, "--dns", dns, "--xds", "unix:" + w.xds}
	agent, err := url.Parse("http://" + api)
	must(t, err)
	through := &httputil.ReverseProxy{
		FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(agent)
			r.Out.Host = r.In.Host // the agent compares it with the origin of the page
		},
	}
	w.proxy = httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		if !w.take(r) {
			panic(http.ErrAbortHandler)
		}
		defer w.end(r)
		http.StripPrefix(below, through).ServeHTTP(to, r)
	}))
	w.proxy.Config.ErrorLog = nil
	t.Cleanup(func() { w.proxy.CloseClientConnections(); w.proxy.Close() })
	w.start()
	return w
}

// three are the clusters of most tests.
func three() []contents.Cluster {
	var all []contents.Cluster
	for i, name := range []string{"london", "paris", "tokyo"} {
		all = append(all, contents.Default(name, uint32(i+1)))
	}
	return all
}

// start starts the agent, and waits until it has read every cluster.
func (w *world) start() {
	w.t.Helper()
	w.agent = agenttest.StartAgent(w.t, w.mesh.Dir(), w.flags...)
	if out, errs, code := w.agent.Call("status", "--wait", "--timeout", "10m"); code != exit.OK {
		w.t.Fatalf("status --wait: exit %d\n%s%s", code, out, errs)
	}
}

// open opens the page through the proxy.
func (w *world) open() *page {
	w.t.Helper()
	return openPage(w.t, w.proxy.URL+below+"/ui/")
}

// take notes a request, and reports whether it may pass.
func (w *world) take(r *http.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := strings.TrimPrefix(r.URL.RequestURI(), below)
	w.asked = append(w.asked, asked)
	if !w.cut {
		w.under = append(w.under, asked)
	}
	return !w.cut
}

// end notes that a request is over.
func (w *world) end(r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.under, strings.TrimPrefix(r.URL.RequestURI(), below))
	w.under = slices.Delete(w.under, at, at+1)
}

// streams are the open watches.
func (w *world) streams() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.under {
		if strings.HasPrefix(one, "/v1/watch") {
			all = append(all, one)
		}
	}
	return all
}

// setCut closes all connections and accepts no others, or accepts them again.
func (w *world) setCut(cut bool) {
	w.mu.Lock()
	w.cut = cut
	w.mu.Unlock()
	if cut {
		w.proxy.CloseClientConnections()
	}
}

// requests are those since the last forget that contain a part.
func (w *world) requests(part string) (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.asked {
		if strings.Contains(one, part) {
			all = append(all, one)
		}
	}
	return all
}

func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = nil
}

func (w *world) cluster(name string) *sim.Running {
	w.t.Helper()
	r, err := w.mesh.Cluster(name)
	must(w.t, err)
	return r
}
