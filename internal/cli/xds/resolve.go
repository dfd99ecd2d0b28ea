package xds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// answerTime is the time limit for all answers of an agent.
const answerTime = 15 * time.Second

// resolved are the endpoints for a client that dials a target.
type resolved struct {
	Target    string     `json:"target"`
	Cluster   string     `json:"cluster"`
	Endpoints []endpoint `json:"endpoints"`
}

// endpoint is one backend. Calls go to the first priority that has a healthy endpoint.
type endpoint struct {
	Priority uint32 `json:"priority"`
	Cluster  string `json:"cluster"`
	Zone     string `json:"zone"`
	Address  string `json:"address"`
	// Additional has the second address of a dual-stack pod.
	Additional []string `json:"additionalAddresses,omitempty"`
	State      string   `json:"state"` // "healthy" or "draining"
}

func resolveCommand(c *command.Env) *cobra.Command {
	var b xdsserver.Bootstrap
	format := printer.NewFormat(printer.Plain, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "resolve NAME",
		Short: "Resolve a name like a gRPC program, and show the backends",
		Long: "Request a name from an agent by xDS, like a gRPC program that dials xds:///NAME (docs/xds.md). Show the backends\n" +
			"that receive its calls now: the healthy backends of the first priority that has any, with an equal share each.",
		Example: "  mesh-agent xds resolve shop/cart:80\n  mesh-agent xds resolve cart.shop.svc.clusterset.local:http --address unix:/run/mesh-agent/xds.sock",
		Args:    command.Arguments(1, 1, "NAME, such as shop/cart:80"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return served(c, cmd, &b, func() error {
				ctx, cancel := context.WithTimeout(cmd.Context(), answerTime)
				defer cancel()
				found, err := resolve(ctx, b, strings.TrimPrefix(args[0], "xds:///"))
				switch {
				case status.Code(err) == codes.Unavailable:
					return fmt.Errorf("xDS at %s: %w (does an agent serve it there, with --xds, and does it have a certificate if --tls is given?)", b.Address, err)
				case err != nil:
					return fmt.Errorf("xDS at %s: %w", b.Address, err)
				}
				return c.Answer(cmd, format, found, func(p *printer.Page) { writeResolved(p, found) })
			})
		},
	}
	serverFlags(cmd, &b)
	return c.Watched(command.WithOutput(cmd, format))
}

// served calls next when b has the address of the server. If none was given, it is the address of the running agent.
func served(c *command.Env, cmd *cobra.Command, b *xdsserver.Bootstrap, next func() error) error {
	if err := check(b); err != nil {
		return err
	}
	if b.Address != "" {
		return next()
	}
	return c.Asking(func(cmd *cobra.Command, _ []string, cl *client.Client) error {
		s, err := cl.Status(cmd.Context())
		if err != nil {
			return err
		}
		for _, one := range s.Serving {
			if one.Protocol == "xDS" {
				b.Address = one.Address
				return next()
			}
		}
		return errors.New("this agent does not serve xDS: give it --xds ADDRESS")
	})(cmd, nil)
}

// resolve requests the resources that a gRPC client needs: the listener with its routes, the cluster, the endpoints.
func resolve(ctx context.Context, b xdsserver.Bootstrap, name string) (resolved, error) {
	conn, err := dial(b)
	if err != nil {
		return resolved{}, err
	}
	defer conn.Close()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx, grpc.WaitForReady(false))
	if err != nil {
		return resolved{}, err
	}
	q := questions{stream: stream, node: &corev3.Node{Id: b.Node, UserAgentName: "mesh-agent xds resolve"}}
	var (
		listener   listenerv3.Listener
		manager    hcmv3.HttpConnectionManager
		cluster    clusterv3.Cluster
		assignment endpointv3.ClusterLoadAssignment
	)
	if err := q.ask(resource.ListenerType, name, &listener); err != nil {
		return resolved{}, err
	}
	if err := listener.GetApiListener().GetApiListener().UnmarshalTo(&manager); err != nil {
		return resolved{}, fmt.Errorf("the listener %q: %w", name, err)
	}
	to := routed(&manager)
	if to == "" {
		if strings.HasPrefix(name, "xdstp:") {
			return resolved{}, fmt.Errorf("%q is a name of a bootstrap with authorities, and this agent serves no names that begin with xdstp: (docs/xds.md); "+
				"remove \"authorities\" from the bootstrap, and give NAMESPACE/SERVICE:PORT", name)
		}
		return resolved{}, fmt.Errorf("no service can have the name %q: give NAMESPACE/SERVICE:PORT, or that of DNS with :PORT", name)
	}
	if err := q.ask(resource.ClusterType, to, &cluster); err != nil {
		return resolved{}, err
	}
	if err := q.ask(resource.EndpointType, cmp.Or(cluster.GetEdsClusterConfig().GetServiceName(), to), &assignment); err != nil {
		return resolved{}, err
	}
	return resolved{Target: "xds:///" + name, Cluster: to, Endpoints: endpoints(&assignment)}, nil
}

func dial(b xdsserver.Bootstrap) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if b.TLS {
		config, err := client.TLSFiles{CA: b.CA, Cert: b.Cert, Key: b.Key}.Config()
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(config)
	}
	return grpc.NewClient(b.Target(), grpc.WithTransportCredentials(creds))
}

// questions are the requests of one stream.
type questions struct {
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	node   *corev3.Node // only in the first request
}

// ask requests one resource.
func (q *questions) ask(url, name string, into proto.Message) error {
	err := q.stream.Send(&discovery.DiscoveryRequest{Node: q.node, TypeUrl: url, ResourceNames: []string{name}})
	q.node = nil
	for err == nil {
		var answer *discovery.DiscoveryResponse
		if answer, err = q.stream.Recv(); err != nil || answer.GetTypeUrl() != url {
			continue // an update of an earlier resource
		}
		all := answer.GetResources()
		if len(all) != 1 {
			return fmt.Errorf("%d resources were sent for one name", len(all))
		}
		return all[0].UnmarshalTo(into)
	}
	if errors.Is(err, context.DeadlineExceeded) || q.stream.Context().Err() != nil {
		return fmt.Errorf("no answer for %q within %s: a cluster that may have it could not be read yet; mesh-agent status says which", name, answerTime)
	}
	return err
}

// routed returns the cluster of the only route; empty without one.
func routed(m *hcmv3.HttpConnectionManager) string {
	for _, host := range m.GetRouteConfig().GetVirtualHosts() {
		for _, r := range host.GetRoutes() {
			return r.GetRoute().GetCluster()
		}
	}
	return ""
}

func endpoints(a *endpointv3.ClusterLoadAssignment) []endpoint {
	all := []endpoint{}
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			one := endpoint{
				Priority: l.GetPriority(), Cluster: l.GetLocality().GetRegion(), Zone: l.GetLocality().GetZone(),
				Address: hostPort(e.GetEndpoint().GetAddress()), State: strings.ToLower(e.GetHealthStatus().String()),
			}
			for _, more := range e.GetEndpoint().GetAdditionalAddresses() {
				one.Additional = append(one.Additional, hostPort(more.GetAddress()))
			}
			all = append(all, one)
		}
	}
	return all
}

func hostPort(a *corev3.Address) string {
	at := a.GetSocketAddress()
	return net.JoinHostPort(at.GetAddress(), strconv.FormatUint(uint64(at.GetPortValue()), 10))
}

func writeResolved(p *printer.Page, r resolved) {
	if len(r.Endpoints) == 0 {
		service, _, _ := strings.Cut(r.Cluster, ":")
		p.Line("%s has no backends: calls fail at once. Its backends and their ports: mesh-agent describe service %s", r.Target, service)
		return
	}
	printer.Rows(p, printer.Table[endpoint]{
		{Title: "PRIORITY", Text: func(e endpoint) string { return fmt.Sprint(e.Priority) }},
		{Title: "CLUSTER", Text: func(e endpoint) string { return e.Cluster }},
		{Title: "ZONE", Text: func(e endpoint) string { return e.Zone }},
		{Title: "ADDRESS", Text: func(e endpoint) string { return strings.Join(append([]string{e.Address}, e.Additional...), ",") }},
		{Title: "STATE", Text: func(e endpoint) string { return e.State }},
	}, r.Endpoints)
}
