package consumers

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// hostile are texts that a cluster writes in place of names: configuration of the programs that read the files, and
// texts that break the syntax of one of them.
func hostile() []string {
	return []string{
		"x {\n    server 127.0.0.1:1;\n}\nserver {\n    listen 127.0.0.1:1;\n    root \\etc;\n}\nupstream y", "x; include \\etc\\passwd", "x\nlisten stats\n    bind 127.0.0.1:1\n",
		"n1\n127.0.0.1 www.example.com\n127.0.0.1 n2", "a b", "a\tb", "a\rb", "a{", "a}", "a;", "a#b", `a"b`, "a'b", `a\`, "$host", "%[env(HOME)]", "${HOME}", "A", "É", "-a", "a-",
		"a\u2028b", "a\u0085b", "a\u202eb", "a\x1bb", "a\x00b", "a\xffb", ".", "..", strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a",
	}
}

// publishHostile lets a cluster write objects whose names and texts are hostile, also in objects with valid names.
func (w *world) publishHostile(cluster string) {
	w.t.Helper()
	r := w.cluster(cluster)
	for i, text := range hostile() {
		ip := address(int(r.Cluster().ID), 7, i+1)
		backends := map[string]wire.Ports{ip: {"http": {Protocol: "TCP", Port: w.port}}}
		for _, name := range [][2]string{{"shop", text}, {text, "cart"}, {"hostile", fmt.Sprintf("port-%d", i)}} {
			s := wire.Service{Cluster: cluster, ClusterID: r.Cluster().ID, Namespace: name[0], Name: name[1], Shared: true, Backends: backends, Hostnames: map[string]string{ip: text}, Labels: map[string]string{text: text}}
			if name[0] == "hostile" {
				s.Backends = map[string]wire.Ports{ip: {"http": {Protocol: text, Port: uint16(i)}, text: {Protocol: "TCP", Port: 1}}}
			}
			must(w.t, r.Put(w.t.Context(), s.Key(), s.Encode()))
		}
		for _, n := range []wire.Node{
			{Name: text, Cluster: cluster, ClusterID: r.Cluster().ID},
			{Name: fmt.Sprintf("hostile-%d", i), Cluster: cluster, ClusterID: r.Cluster().ID, Labels: map[string]string{"topology.kubernetes.io/zone": text, text: "x"}, Annotations: map[string]string{"note": text}},
		} {
			n.IPAddresses = []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: net.ParseIP(ip)}}
			must(w.t, r.Put(w.t.Context(), n.Key(), n.Encode()))
		}
	}
}

// render writes the files of templates of the documents to a directory.
func (w *world) render(dir string, names ...string) {
	w.t.Helper()
	args := []string{"render", "--server", "http://" + w.api, "--once"}
	for _, name := range names {
		args = append(args, "-t", "../../docs/templates/"+name+".tmpl="+filepath.Join(dir, name))
	}
	if out, errs, code := agenttest.Call(w.t, args...); code != 0 {
		w.t.Fatalf("%q: exit %d\n%s%s", args, code, out, errs)
	}
}

// sections are the names in the lines of a file that begin with a word.
func (w *world) sections(file, word string) (names []string) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	must(w.t, err)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, word) && len(fields) > 1 {
			names = append(names, fields[1])
		}
	}
	return names
}

// TestHostileNamesInTemplates: nginx and HAProxy accept the files of the ready templates with all names that a cluster
// can publish, and with all services that have valid names; the section of another cluster's service is always there.
func TestHostileNamesInTemplates(t *testing.T) {
	t.Parallel()
	nginx, haproxy := programtest.Find(t, "consumers", "nginx"), programtest.Find(t, "consumers", "haproxy")
	w := newWorld(t)
	w.publish("east", "cart", address(1, 0, 1))
	w.publish("east", "empty")
	for _, name := range [][2]string{{"shop-my", "cart"}, {"shop", "my-cart"}} {
		s := wire.Service{Cluster: "west", ClusterID: 2, Namespace: name[0], Name: name[1], Shared: true, Backends: map[string]wire.Ports{address(2, 0, 1): {"http": {Protocol: "TCP", Port: w.port}}}}
		must(t, w.cluster("west").Put(t.Context(), s.Key(), s.Encode()))
	}
	w.publishHostile("north")
	w.publish("north", "cart", address(3, 0, 1)) // a cluster whose entries are all refused is not ready
	w.node("north", "n3", address(3, 1, 1))
	w.node("east", "n1", address(1, 1, 1))
	w.start()
	dir := t.TempDir()
	w.render(dir, "nginx", "haproxy", "hosts", "envoy-eds")

	for file, word := range map[string]string{"nginx": "upstream", "haproxy": "backend"} {
		names := w.sections(filepath.Join(dir, file), word)
		has := make(map[string]bool)
		for _, name := range names {
			if has[name] {
				t.Errorf("%s: two services have the name %s", file, name)
			}
			has[name] = true
			if strings.HasPrefix(name, "hostile-port-") {
				delete(has, name)
			}
		}
		if len(has) != 4 || !has["shop-cart"] || !has["shop-empty"] || !has["shop--my-cart"] || !has["shop-my-cart"] {
			t.Errorf("%s has %v", file, names)
		}
	}
	hosts, err := os.ReadFile(filepath.Join(dir, "hosts"))
	must(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(hosts)), "\n")[2:] {
		if fields := strings.Fields(line); len(fields) != 2 || net.ParseIP(fields[0]) == nil || !strings.HasSuffix(line, ".north") && line != address(1, 1, 1)+" n1.east" {
			t.Errorf("the file of hosts has %q", line)
		}
	}

	uses := "    server { listen 127.0.0.1:1; location / { proxy_pass http://shop-cart; } location /empty { proxy_pass http://shop-empty; } location /my { proxy_pass http://shop--my-cart; } }\n"
	accepts(t, exec.Command(nginx, "-t", "-c", nginxConfig(t, dir, "    include "+filepath.Join(dir, "nginx")+";\n"+uses)))
	accepts(t, exec.Command(haproxy, "-c", "-f", programtest.Write(t, dir, "main.cfg", haproxyDefaults+"frontend shop\n    bind 127.0.0.1:1\n    default_backend shop--my-cart\n"), "-f", filepath.Join(dir, "haproxy")))
	// As in docs/render.md: HAProxy refuses a file without any listener.
	accepts(t, exec.Command(haproxy, "-c", "-f", filepath.Join(dir, "haproxy")))
}

const haproxyDefaults = "defaults\n    mode http\n    timeout connect 1s\n    timeout client 1m\n    timeout server 1m\n"

// nginxConfig writes a configuration of nginx, with some lines in http.
func nginxConfig(t *testing.T, dir, lines string) (file string) {
	t.Helper()
	user := ""
	if os.Geteuid() == 0 { // its files belong to the test's user
		user = "user root;\n"
	}
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary.WriteString("    " + kind + "_temp_path " + filepath.Join(dir, kind) + ";\n")
	}
	return programtest.Write(t, dir, "nginx.conf", user+"daemon off;\nworker_processes 1;\nerror_log stderr;\npid "+filepath.Join(dir, "pid")+";\nevents {}\nhttp {\n    access_log off;\n"+
		temporary.String()+lines+"}\n")
}

// accepts fails the test if a program refuses a configuration.
func accepts(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", filepath.Base(cmd.Path), err, out)
	}
}

// TestQuotesOfTemplates: the programs read the results of nginxQuote and haproxyQuote as the original text.
func TestQuotesOfTemplates(t *testing.T) {
	t.Parallel()
	nginx, haproxy := programtest.Find(t, "consumers", "nginx"), programtest.Find(t, "consumers", "haproxy")
	w := newWorld(t)
	w.start()
	texts := []string{
		"plain", "a b", `a"b`, `a'b`, `"`, `'`, `''`, `\`, `\\`, `\"`, `\'`, `a\n\t\x41b`, "; }", "} server {", "{ a }", "# no comment", "a#b", "a;b", "é…😀", "-f", "}", strings.Repeat(`\"`, 500), strings.Repeat("a", 2000),
	}
	for program, test := range map[string]struct{ before, line, after, extra string }{
		"nginx":   {"server {\n    listen AT;\n", "    location = /{{ $i }} { return 200 {{ nginxQuote $text }}; }\n", "}\n", "%[env(HOME)]"},
		"haproxy": {"frontend texts\n    bind AT\n", "    http-request return status 200 content-type text/plain string {{ haproxyQuote $text }} if { path /{{ $i }} }\n", "", "$HOME ${HOME}"},
	} {
		t.Run(program, func(t *testing.T) {
			dir, at := t.TempDir(), programtest.Reserve(t)
			all := append(texts[:len(texts):len(texts)], test.extra)
			list := "list"
			for _, text := range all {
				list += " " + strconv.Quote(text)
			}
			template := programtest.Write(t, dir, "template", strings.ReplaceAll(test.before, "AT", at)+"{{ range $i, $text := "+list+" }}"+test.line+"{{ end }}"+test.after)
			file := filepath.Join(dir, "file")
			if out, errs, code := agenttest.Call(t, "render", "--server", "http://"+w.api, "--once", "-t", template+"="+file); code != 0 {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			cmd := exec.Command(haproxy, "-db", "-f", programtest.Write(t, dir, "main.cfg", haproxyDefaults), "-f", file)
			ends := syscall.SIGTERM
			if program == "nginx" {
				cmd, ends = exec.Command(nginx, "-c", nginxConfig(t, dir, "    include "+file+";\n")), syscall.SIGQUIT
			}
			programtest.Start(t, cmd, ends)
			for i, text := range all {
				waittest.Try(t, fmt.Sprintf("the answer %q", text), func() error {
					resp, err := http.Get(fmt.Sprintf("http://%s/%d", at, i))
					if err != nil {
						return err
					}
					defer resp.Body.Close()
					got, err := io.ReadAll(resp.Body)
					if err == nil && string(got) != text {
						t.Fatalf("%s read %q, not %q", program, got, text)
					}
					return err
				})
			}
		})
	}
}
