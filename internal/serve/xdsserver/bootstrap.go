package xdsserver

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
)

// Bootstrap has the settings that a client reads at its start: where the server is, and the identity of the client.
type Bootstrap struct {
	Address string // of the server: HOST:PORT or unix:PATH
	Node    string // the ID of the client
	Zone    string // of the client; may be empty
	// TLS reports whether the server uses TLS. The files are in PEM form, and may be empty: without CA, the CAs of the
	// system are used; without Cert and Key, the client has no certificate.
	TLS           bool
	CA, Cert, Key string
}

// object is a JSON object.
type object = map[string]any

// GRPC returns the bootstrap file of a gRPC program. The variable GRPC_XDS_BOOTSTRAP has the path of this file. A
// resource that the server no longer lists stays in use.
func (b Bootstrap) GRPC() ([]byte, error) {
	credentials := object{"type": "insecure"}
	if b.TLS {
		credentials = object{"type": "tls", "config": nonEmpty("ca_certificate_file", b.CA, "certificate_file", b.Cert, "private_key_file", b.Key)}
	}
	return pretty(object{
		"xds_servers": []any{object{
			"server_uri": b.Target(), "channel_creds": []any{credentials}, "server_features": []string{"xds_v3", "ignore_resource_deletion"},
		}},
		"node": b.node(),
	})
}

// Target returns the address in the form that gRPC dials.
func (b Bootstrap) Target() string {
	if path, found := strings.CutPrefix(b.Address, unixPrefix); found && strings.HasPrefix(path, "/") {
		return unixPrefix + "//" + path
	}
	return b.Address
}

// Envoy returns the bootstrap of an Envoy that gets clusters and endpoints from the server. The user adds listeners
// with routes to the clusters.
func (b Bootstrap) Envoy() ([]byte, error) {
	upstream := object{
		"name": "mesh-agent", "type": "STATIC", "connect_timeout": "5s",
		"typed_extension_protocol_options": object{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": object{
			"@type":                "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
			"explicit_http_config": object{"http2_protocol_options": object{"connection_keepalive": object{"interval": "60s", "timeout": "20s"}}},
		}},
	}
	address, err := b.envoyAddress(upstream)
	if err != nil {
		return nil, err
	}
	upstream["load_assignment"] = object{
		"cluster_name": "mesh-agent", "endpoints": []any{object{"lb_endpoints": []any{object{"endpoint": object{"address": address}}}}},
	}
	if b.TLS {
		upstream["transport_socket"] = b.envoyTLS()
	}
	node := b.node()
	node["cluster"] = "mesh"
	source := object{"ads": object{}, "resource_api_version": "V3"}
	return pretty(object{
		"node": node,
		"dynamic_resources": object{
			"ads_config": object{
				"api_type": "DELTA_GRPC", "transport_api_version": "V3", "set_node_on_first_message_only": true,
				"grpc_services": []any{object{"envoy_grpc": object{"cluster_name": "mesh-agent"}}},
			},
			"cds_config": source,
		},
		"static_resources": object{"listeners": []any{}, "clusters": []any{upstream}},
	})
}

// envoyAddress returns the address of the server. If that is a host name, the cluster gets the type that resolves it
// with DNS.
func (b Bootstrap) envoyAddress(cluster object) (object, error) {
	if path, found := strings.CutPrefix(b.Address, unixPrefix); found {
		return object{"pipe": object{"path": path}}, nil
	}
	host, text, err := net.SplitHostPort(b.Address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) == nil {
		cluster["type"] = "STRICT_DNS"
	}
	return object{"socket_address": object{"address": host, "port_value": port}}, nil
}

func (b Bootstrap) envoyTLS() object {
	common := object{"alpn_protocols": []string{"h2"}}
	if b.CA != "" {
		common["validation_context"] = object{"trusted_ca": object{"filename": b.CA}}
	}
	if b.Cert != "" {
		common["tls_certificates"] = []any{object{"certificate_chain": object{"filename": b.Cert}, "private_key": object{"filename": b.Key}}}
	}
	of := object{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "common_tls_context": common}
	if host, _, err := net.SplitHostPort(b.Address); err == nil && net.ParseIP(host) == nil {
		of["sni"] = host
	}
	return object{"name": "envoy.transport_sockets.tls", "typed_config": of}
}

func (b Bootstrap) node() object {
	return object{"id": b.Node, "locality": nonEmpty("zone", b.Zone)} // grpc-js refuses a node without a locality
}

// nonEmpty makes an object of the pairs that have a value.
func nonEmpty(pairs ...string) object {
	o := object{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			o[pairs[i]] = pairs[i+1]
		}
	}
	return o
}

func pretty(o object) ([]byte, error) {
	text, err := json.MarshalIndent(o, "", "  ")
	return append(text, '\n'), err
}
