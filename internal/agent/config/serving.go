package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// ServingConfig are the settings of the choice of backends, and of the servers for clients that connect to them.
type ServingConfig struct {
	Zone          string    `mapstructure:"zone" modes:"run" help:"zone of this node; backends in this zone are preferred"`
	SameNodeFirst bool      `mapstructure:"same-node-first" modes:"run" help:"prefer backends on this node to others in the zone"`
	DNS           DNSConfig `mapstructure:",squash" subject:"DNS server"`
	XDS           XDSConfig `mapstructure:",squash" subject:"xDS server"`
}

// DNSConfig is the DNS server (docs/dns.md).
type DNSConfig struct {
	Address  string        `mapstructure:"dns" modes:"run" help:"address of the DNS server for services, such as 127.0.0.1:5353 (docs/dns.md); default: no server"`
	Zones    string        `mapstructure:"dns-zones" modes:"run" help:"DNS zones of services, separated by commas"`
	MeshZone string        `mapstructure:"dns-mesh-zone" modes:"run" help:"DNS zone of clusters, with the backends of one cluster, the nodes, and the names of addresses; default: none"`
	TTL      time.Duration `mapstructure:"dns-ttl" modes:"run" help:"TTL of answers, in whole seconds, at most 1h"`
	Answers  uint32        `mapstructure:"dns-max-backends" modes:"run" help:"maximum number of backends in an answer"`
	Clients  string        `mapstructure:"dns-clients" modes:"run" help:"networks of permitted clients, separated by commas; default: loopback, private, link-local and shared networks, and those of the own cluster"`
	Queries  uint32        `mapstructure:"dns-max-queries" modes:"run" help:"maximum number of queries at the same time; at most 25 % of them from one client"`
}

// XDSConfig is the xDS server (docs/xds.md). Over TCP it has the certificate of the API.
type XDSConfig struct {
	Address        string        `mapstructure:"xds" modes:"run" help:"address of the xDS server for gRPC clients and Envoy, such as 127.0.0.1:9980 or unix:/run/mesh-agent/xds.sock (docs/xds.md); default: no server"`
	Streams        uint32        `mapstructure:"xds-max-streams" modes:"run" help:"maximum number of xDS streams at the same time; each client has one"`
	StreamsPerPeer uint32        `mapstructure:"xds-max-streams-per-peer" modes:"run" help:"maximum number of xDS streams from one address (an IPv6 /64); all loopback addresses together: 75 % of --xds-max-streams"`
	Names          uint32        `mapstructure:"xds-max-names" modes:"run" help:"maximum number of names of one type that one xDS stream may subscribe to"`
	Outliers       time.Duration `mapstructure:"xds-outlier-detection" modes:"run" help:"interval at which xDS clients look for backends whose calls fail, and leave them for a while, such as 10s; 0: never (docs/xds.md)"`
	Memory         string        `mapstructure:"xds-max-memory" modes:"run" help:"memory limit for what xDS clients make the agent keep, such as 64Mi (an estimate); one address has 25 % of it (docs/xds.md)"`
}

// Bounds of the interval of outlier detection, which clients carry out.
const (
	minOutliers = 100 * time.Millisecond
	maxOutliers = time.Hour
)

// MemoryLimit is the memory limit in bytes, at most [budget.XDSClients].
func (c XDSConfig) MemoryLimit() int64 {
	n, _ := budget.ParseSize(c.Memory) // the settings are validated before
	return min(n, budget.XDSClients.Bytes())
}

// defaultServing returns the configuration without any setting.
func defaultServing() ServingConfig {
	return ServingConfig{
		DNS: DNSConfig{Zones: dnsserver.DefaultZone, TTL: dnsserver.DefaultTTL, Answers: dnsserver.DefaultAnswers, Queries: dnsserver.DefaultQueries},
		XDS: XDSConfig{Streams: xdsserver.DefaultStreams, StreamsPerPeer: xdsserver.DefaultStreamsPerPeer, Names: xdsserver.DefaultNames, Memory: quantity(xdsserver.DefaultMemory)},
	}
}

// Asker returns the client for whom backends are chosen.
func (c Config) Asker() backends.Asker {
	a := backends.Asker{Zone: c.Serving.Zone}
	if c.Serving.SameNodeFirst {
		a.Node = c.NodeName
	}
	return a
}

// ZoneNames are the zones of services; there is at least one.
func (c DNSConfig) ZoneNames() []string { return list(c.Zones) }

// ClientNetworks returns the networks of permitted clients; nil for the default ones.
func (c DNSConfig) ClientNetworks() (all []netip.Prefix, err error) {
	for _, text := range list(c.Clients) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no network such as 10.0.0.0/8", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// list splits a text at commas and spaces.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// maxTTL is the longest time that an answer may be cached: until then, a client does not see later changes.
const maxTTL = time.Hour

func (c ServingConfig) validate(note func(flag string, err error), listening ListenConfig) {
	c.XDS.validate(note, listening)
	d := c.DNS
	if d.Address != "" {
		note("dns", checkAddress(d.Address, "127.0.0.1:5353"))
	}
	if len(d.ZoneNames()) == 0 {
		note("dns-zones", errors.New("give at least one zone, such as "+dnsserver.DefaultZone))
	} else {
		note("dns-zones/dns-mesh-zone", dnsserver.CheckZones(d.ZoneNames(), d.MeshZone))
	}
	if d.TTL < 0 || d.TTL > maxTTL || d.TTL%time.Second != 0 {
		note("dns-ttl", fmt.Errorf("%s is not a number of whole seconds up to %s", d.TTL, maxTTL))
	}
	if d.Answers == 0 || d.Answers > 1000 {
		note("dns-max-backends", fmt.Errorf("%d is not within 1 and 1000", d.Answers))
	}
	if d.Queries == 0 {
		note("dns-max-queries", errors.New("0 would refuse all clients: give at least 1"))
	}
	_, err := d.ClientNetworks()
	note("dns-clients", err)
}

func (c XDSConfig) validate(note func(flag string, err error), listening ListenConfig) {
	tcp, socket := xdsserver.SplitAddress(c.Address)
	switch host, _, err := net.SplitHostPort(tcp); {
	case c.Address == "" || socket != "":
	case tcp == "":
		note("xds", errors.New("unix: is followed by the path of a socket, such as unix:/run/mesh-agent/xds.sock"))
	case err != nil:
		note("xds", checkAddress(tcp, "127.0.0.1:9980, or unix:/run/mesh-agent/xds.sock"))
	case !isLoopback(host) && listening.TLSCert == "" && !listening.Insecure:
		note("xds", fmt.Errorf("%q may be reached by other machines, and the agent would not authenticate them: listen on a loopback address such as 127.0.0.1:9980 or on a unix socket, "+
			"or give --tls-cert-file, --tls-key-file and --tls-client-ca-file, or --listen-insecure if everyone there may read everything", tcp))
	}
	if c.Outliers != 0 && (c.Outliers < minOutliers || c.Outliers > maxOutliers) {
		note("xds-outlier-detection", fmt.Errorf("%s is not 0, nor within %s and %s", c.Outliers, minOutliers, maxOutliers))
	}
	if n, err := budget.ParseSize(c.Memory); err != nil {
		note("xds-max-memory", err)
	} else if n < xdsserver.MinMemory {
		note("xds-max-memory", fmt.Errorf("%s would refuse clients with a few names: give at least %s", c.Memory, quantity(xdsserver.MinMemory)))
	}
	for flag, n := range map[string]uint32{"xds-max-streams": c.Streams, "xds-max-streams-per-peer": c.StreamsPerPeer, "xds-max-names": c.Names} {
		if n == 0 {
			note(flag, errors.New("0 would refuse all clients: give at least 1"))
		}
	}
}

// checkAddress accepts HOST:PORT.
func checkAddress(address, example string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fmt.Errorf("%q is no address with a port, such as %s", address, example)
	}
	return nil
}
