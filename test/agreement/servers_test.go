package agreement

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/render"
	"github.com/mesh-agent/mesh-agent/internal/serve/discovery"
	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// servers are all servers of one world.
type servers struct {
	t      *testing.T
	socket string // of the API
	http   *http.Client
	dns    *dnsserver.Server
	files  string // a directory

	stream      discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	assignments map[string][]string // the latest ones, as lines, by name
}

// start runs the servers of a world until the end of the test.
func start(t *testing.T, w *viewtest.World) *servers {
	t.Helper()
	a := &servers{t: t, files: t.TempDir(), assignments: make(map[string][]string)}
	a.socket = filepath.Join(a.files, "api")
	_, level, err := logging.New(io.Discard, "info", "text")
	must(t, err)
	of, err := httpapi.NewServer(httpapi.Params{
		Agent: api.AgentInfo{Cluster: viewtest.Own, ClusterID: 1}, View: w.View, Gatherer: prometheus.NewRegistry(), LogLevel: level, Settings: api.Settings{}, Asker: asker,
	}, slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, of.Listen("", a.socket, false))
	a.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", a.socket)
	}}}
	a.dns, err = dnsserver.New(dnsserver.Params{View: w.View, Cluster: viewtest.Own, Asker: asker})
	must(t, err)
	must(t, a.dns.Listen("127.0.0.1:0"))
	x, err := xdsserver.New(xdsserver.Params{View: w.View, Asker: asker})
	must(t, err)
	must(t, x.Listen("unix:"+filepath.Join(a.files, "xds")))
	ctx, cancel := context.WithCancel(context.Background())
	all := []func(context.Context) error{of.Serve, a.dns.Run, x.Run, w.View.Run}
	ended := make(chan error, len(all))
	for _, run := range all {
		go func() { ended <- run(ctx) }()
	}
	t.Cleanup(func() {
		a.http.CloseIdleConnections()
		cancel()
		for range all {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	a.follow(filepath.Join(a.files, "xds"))
	return a
}

var must = waittest.Must

// get reads JSON of the API; if the path is not found, into stays unchanged.
func (a *servers) get(path string, into any) {
	a.t.Helper()
	r, err := a.http.Get("http://agent" + path)
	must(a.t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	must(a.t, err)
	switch r.StatusCode {
	case http.StatusNotFound:
		return
	case http.StatusOK:
	default:
		a.t.Fatalf("%s: %s: %s", path, r.Status, text)
	}
	must(a.t, json.Unmarshal(text, into))
}

func (a *servers) api(name, port string) (all []string) {
	var s api.ServiceBackends
	a.get("/v1/backends/"+namespace+"/"+name+"?port="+port, &s)
	for i, g := range s.Groups {
		add := func(of []api.ChosenBackend, draining bool) {
			for _, b := range of {
				for _, p := range b.Ports {
					all = append(all, line(i, b.Cluster, b.Zone, net.JoinHostPort(b.IP, strconv.Itoa(int(p.Port))), draining))
				}
			}
		}
		add(g.Backends, false)
		add(g.Draining, true)
	}
	slices.Sort(all)
	return all
}

func (a *servers) prometheus(name string) (all []string) {
	var groups []discovery.Group
	a.get("/v1/discovery/prometheus/endpoints?name="+name, &groups)
	for _, g := range groups {
		l := func(name string) string { return g.Labels["__meta_mesh_"+name] }
		group, err := strconv.Atoi(l("group"))
		must(a.t, err)
		for _, target := range g.Targets {
			if other := l("additional_address"); other != "" {
				target += " " + other
			}
			all = append(all, line(group, l("cluster"), l("endpoint_zone"), target, l("draining") == "true"))
		}
	}
	slices.Sort(all)
	return all
}

// ofGroups is the template for the same lines as those of the function line.
const ofGroups = `{{ range $i, $g := (backends "NAME" "http").Groups -}}
{{ range $g.Backends }}{{ $i }} {{ .Cluster }}/{{ .Zone }} {{ .Address }} draining=false
{{ end }}{{ range $g.Draining }}{{ $i }} {{ .Cluster }}/{{ .Zone }} {{ .Address }} draining=true
{{ end }}{{ end }}`

func (a *servers) template(name string) []string {
	in, to := filepath.Join(a.files, name+".tmpl"), filepath.Join(a.files, name)
	must(a.t, os.WriteFile(in, []byte(strings.Replace(ofGroups, "NAME", namespace+"/"+name, 1)), 0o600))
	cmd := render.New(&command.Env{Getenv: func(string) string { return "" }, Environ: func() []string { return nil }, Now: time.Now, DefaultSocket: a.socket, DefaultServer: "127.0.0.1:1"})
	var said bytes.Buffer
	cmd.SetOut(&said)
	cmd.SetErr(&said)
	cmd.SetArgs([]string{"--once", "-t", in + "=" + to})
	if err := cmd.ExecuteContext(a.t.Context()); err != nil {
		a.t.Fatalf("render: %v: %s", err, &said)
	}
	text, err := os.ReadFile(to)
	must(a.t, err)
	all := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	slices.Sort(all)
	return all
}

// ask sends a question about a service to the DNS server.
func (a *servers) ask(name string, kind uint16) *dns.Msg {
	a.t.Helper()
	q := new(dns.Msg)
	q.SetQuestion(name, kind)
	q.SetEdns0(4096, false)
	// Over TCP no question is lost on a busy machine.
	m, _, err := (&dns.Client{Net: "tcp", Timeout: time.Hour}).Exchange(q, a.dns.Address())
	must(a.t, err)
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		a.t.Fatalf("%s: %s", name, dns.RcodeToString[m.Rcode])
	}
	return m
}

func inMesh(name string) string { return name + "." + namespace + ".svc.clusterset.local." }

// addresses are those of a name.
func (a *servers) addresses(name string) []string { return a.addressesOf(inMesh(name)) }

func (a *servers) addressesOf(name string) (all []string) {
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		for _, rr := range a.ask(name, kind).Answer {
			switch rr := rr.(type) {
			case *dns.A:
				all = append(all, rr.A.String())
			case *dns.AAAA:
				all = append(all, rr.AAAA.String())
			}
		}
	}
	slices.Sort(all)
	return all
}

// targets are the addresses, with ports, of the targets of a port of a service.
func (a *servers) targets(name, port string) (all []string) {
	for _, rr := range a.ask(port+inMesh(name), dns.TypeSRV).Answer {
		srv, ok := rr.(*dns.SRV)
		if !ok {
			a.t.Fatalf("%s", rr)
		}
		of := a.addressesOf(srv.Target)
		if len(of) == 0 {
			a.t.Fatalf("%s has no address", srv.Target)
		}
		for _, ip := range of {
			all = append(all, net.JoinHostPort(ip, strconv.Itoa(int(srv.Port))))
		}
	}
	slices.Sort(all)
	return all
}

// follow opens a stream of xDS that follows the endpoints of all services.
func (a *servers) follow(socket string) {
	a.t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(a.t, err)
	a.t.Cleanup(func() { _ = conn.Close() })
	a.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(waittest.Context(a.t))
	must(a.t, err)
	a.confirm(nil)
}

// confirm acknowledges an answer, and follows the same names as before.
func (a *servers) confirm(answer *discoveryv3.DiscoveryResponse) {
	r := &discoveryv3.DiscoveryRequest{
		Node: &corev3.Node{Id: "test"}, TypeUrl: resource.EndpointType, VersionInfo: answer.GetVersionInfo(), ResponseNonce: answer.GetNonce(),
	}
	for _, name := range names {
		r.ResourceNames = append(r.ResourceNames, namespace+"/"+name+":http")
	}
	must(a.t, a.stream.Send(r))
}

// xds is the latest assignment of a service, after a wait until it is as wanted: it is sent without a request.
func (a *servers) xds(name string, wanted []string) []string {
	a.t.Helper()
	name = namespace + "/" + name + ":http"
	for {
		if last, has := a.assignments[name]; has && slices.Equal(last, wanted) {
			return last
		}
		answer, err := a.stream.Recv()
		if err != nil {
			a.t.Fatalf("%v: %s is %q, not %q", err, name, a.assignments[name], wanted)
		}
		for _, r := range answer.GetResources() {
			m := new(endpointv3.ClusterLoadAssignment)
			must(a.t, r.UnmarshalTo(m))
			a.assignments[m.GetClusterName()] = linesOf(m)
		}
		a.confirm(answer)
	}
}

func linesOf(m *endpointv3.ClusterLoadAssignment) (all []string) {
	for _, l := range m.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			sockets := socketOf(e.GetEndpoint().GetAddress())
			for _, more := range e.GetEndpoint().GetAdditionalAddresses() {
				sockets += " " + socketOf(more.GetAddress())
			}
			all = append(all, line(int(l.GetPriority()), l.GetLocality().GetRegion(), l.GetLocality().GetZone(), sockets, e.GetHealthStatus() == corev3.HealthStatus_DRAINING))
		}
	}
	slices.Sort(all)
	return all
}

func socketOf(a *corev3.Address) string {
	at := a.GetSocketAddress()
	return netip.AddrPortFrom(netip.MustParseAddr(at.GetAddress()), uint16(at.GetPortValue())).String() //nolint:gosec // a port
}
