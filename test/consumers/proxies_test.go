package consumers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// cart lets three clusters have the service cart with a server each.
func (w *world) cart() (all []string) {
	w.t.Helper()
	for i, name := range names() {
		all = append(all, address(i+1, 0, 1))
		w.serve(all[i])
		w.publish(name, "cart", all[i])
	}
	return all
}

// carries checks that a proxy, which listens on an address, sends all requests to existing servers, during all faults
// of clusters, backends and the agent. No request fails.
func (w *world) carries(at string, cart []string) {
	w.t.Helper()
	l := w.load(at)
	l.await("all clusters", cart...)

	w.publish("west", "cart") // it leaves the service before it ends
	l.await("a backend to leave", cart[0], cart[2])
	w.crash(cart[1])
	l.more("requests without it")
	w.serve(cart[1])
	w.publish("west", "cart", cart[1])
	l.await("the backend to return", cart...)

	must(w.t, w.cluster("north").Kill())
	w.crash(cart[2])
	l.await("a cluster to be gone", cart[:2]...)
	w.serve(cart[2])
	must(w.t, w.cluster("north").Start(w.t.Context()))
	l.await("the cluster to return", cart...)

	w.kill()
	l.more("requests without an agent")
	w.killClusters()
	w.startUnready()
	l.more("requests while the agent knows nothing")
	l.await("all clusters, which the agent does not know", cart...)
	w.startClusters()
	w.publish("east", "cart")
	l.await("what has changed meanwhile", cart[1:]...)
	w.publish("east", "cart", cart[0])
	l.await("all clusters in the end", cart...)
}

// TestHAProxy: servers from SRV records, as in docs/dns.md.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	path := programtest.Find(t, "consumers", "haproxy")
	w := newWorld(t, "--clustermesh-sync-timeout", "1h")
	cart := w.cart()
	w.start()
	at := programtest.Reserve(t)
	config := programtest.Write(t, t.TempDir(), "haproxy.cfg", "global\n    log stderr format raw daemon notice\ndefaults\n    log global\n    mode http\n    timeout connect 1s\n    timeout client 1m\n    timeout server 1m\n"+
		"frontend shop\n    bind "+at+"\n    default_backend cart\n"+document(t, "dns.md", "resolvers mesh", "169.254.20.11:53", w.dns))
	programtest.Start(t, exec.Command(path, "-db", "-f", config), syscall.SIGTERM)
	w.carries(at, cart)
}

// TestNginx: upstreams from a template, and a reload, as in docs/render.md.
func TestNginx(t *testing.T) {
	t.Parallel()
	path := programtest.Find(t, "consumers", "nginx")
	w := newWorld(t, "--clustermesh-sync-timeout", "1h")
	cart := w.cart()
	w.start()
	dir, at := t.TempDir(), programtest.Reserve(t)
	upstreams := filepath.Join(dir, "upstreams.conf")
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary.WriteString("    " + kind + "_temp_path " + filepath.Join(dir, kind) + ";\n")
	}
	user := ""
	if os.Geteuid() == 0 { // its files belong to the test's user
		user = "user root;\n"
	}
	config := programtest.Write(t, dir, "nginx.conf", user+"daemon off;\nworker_processes 2;\nerror_log stderr;\npid "+filepath.Join(dir, "pid")+";\nevents {}\n"+
		document(t, "render.md", "http {", "/etc/nginx/upstreams.conf;", upstreams+";\n    access_log off;\n"+temporary.String(), "listen 80;", "listen "+at+";"))
	render := []string{"render", "--server", "http://" + w.api, "-t", "../../docs/templates/nginx.tmpl=" + upstreams}
	if out, errs, code := agenttest.Call(t, append(render, "--once")...); code != 0 {
		t.Fatalf("render --once: exit %d\n%s%s", code, out, errs)
	}
	programtest.Start(t, exec.Command(path, "-c", config), syscall.SIGQUIT)
	reload := path + " -c " + config + " -s reload"
	said := programtest.Start(t, agenttest.Program(t, append(render, "--check", path+" -t -c "+config, "--exec", reload)...), syscall.SIGTERM)
	w.carries(at, cart)
	waittest.Until(t, "the last reload", func() bool { return slices.Contains(strings.Split(said.String(), "\n"), "ran "+reload) })
}
