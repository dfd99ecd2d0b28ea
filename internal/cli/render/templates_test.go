package render_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/simtest/doctest"
)

// TestReadyTemplates renders the templates of the documentation.
func TestReadyTemplates(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, `
		service own shop/cart affinity=local 10.0.0.1,zone=a 10.0.0.2,state=terminating
		service east shop/cart 10.1.0.1 fd00::1
		service east shop/dns 10.1.0.9,ports=dns:53/UDP
		service east team/a-web 10.1.0.4
		service east team-a/web 10.1.0.5
		service east shop/empty
		node east n1 192.168.1.1
	`)
	for name, want := range map[string]string{
		"nginx": `upstream shop-cart {
    server 10.0.0.1:8080;
    server 10.1.0.1:8080 backup;
    server [fd00::1]:8080 backup;
}
upstream shop-dns {
    server 127.0.0.1:9 down;
}
upstream shop-empty {
    server 127.0.0.1:9 down;
}
upstream team--a-web {
    server 10.1.0.5:8080;
}
upstream team-a-web {
    server 10.1.0.4:8080;
}
`,
		"haproxy": `listen mesh-agent-servers
    mode http
    bind 127.0.0.1:8405
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    stats enable
    stats uri /
    stats refresh 5s

backend shop-cart
    balance roundrobin
    server own-10.0.0.1 10.0.0.1:8080 check
    server own-10.0.0.2 10.0.0.2:8080 weight 0
    server east-10.1.0.1 10.1.0.1:8080 check backup
    server east-fd00::1 [fd00::1]:8080 check backup

backend shop-dns
    balance roundrobin

backend shop-empty
    balance roundrobin

backend team--a-web
    balance roundrobin
    server east-10.1.0.5 10.1.0.5:8080 check

backend team-a-web
    balance roundrobin
    server east-10.1.0.4 10.1.0.4:8080 check

`,
		"hosts": "127.0.0.1 localhost\n::1 localhost\n192.168.1.1 n1.east\n",
		"envoy-eds": `resources:
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: shop/cart
  endpoints:
  - priority: 0
    locality: {region: "own", zone: ""}
    lb_endpoints:
    - {health_status: DRAINING, endpoint: {address: {socket_address: {address: "10.0.0.2", port_value: 8080}}}}
  - priority: 0
    locality: {region: "own", zone: "a"}
    lb_endpoints:
    - endpoint: {address: {socket_address: {address: "10.0.0.1", port_value: 8080}}}
  - priority: 1
    locality: {region: "east", zone: ""}
    lb_endpoints:
    - endpoint: {address: {socket_address: {address: "10.1.0.1", port_value: 8080}}}
    - endpoint: {address: {socket_address: {address: "fd00::1", port_value: 8080}}}
`,
	} {
		out := filepath.Join(a.dir, name)
		_, _, err := a.run(t.Context(), "--once", "-t", filepath.Join("..", "..", "..", "docs", "templates", name+".tmpl")+"="+out)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, a.has(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNamedServices: the template in docs/render.md writes a section for each of its services, including a service that
// no cluster has.
func TestNamedServices(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.Play(t, "service own shop/cart 10.0.0.1\nservice own shop/other 10.0.0.2")
	ready, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "templates", "nginx.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^.*range services.*\n`)
	named := line.ReplaceAllLiteralString(string(ready), strings.TrimSpace(doctest.Block(t, "../../../docs/render.md", "{{ range $service"))+"\n")
	_, _, err = a.run(t.Context(), "--once", "-t", a.file("t", named)+"="+filepath.Join(a.dir, "out"))
	want := "upstream shop-cart {\n    server 10.0.0.1:8080;\n}\nupstream shop-web {\n    server 127.0.0.1:9 down;\n}\n"
	if err != nil || a.has("out") != want {
		t.Errorf("%v\n%s", err, a.has("out"))
	}
}
