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
	Zone          string    `flag:"zone" modes:"run" help:"zone of this node; backends in this zone are preferred"`
	SameNodeFirst bool      `flag:"same-node-first" modes:"run" help:"prefer backends on this node to others in the zone"`
	DNS           DNSConfig `subject:"DNS server"`
	XDS           XDSConfig `subject:"xDS server"`
}

// DNSConfig is the DNS server (docs/dns.md).
type DNSConfig struct {
	Address  string        `flag:"dns" modes:"run" help:"address of the DNS server for services, such as 127.0.0.1:5353 (docs/dns.md); default: no server"`
	Zones    string        `flag:"dns-zones" modes:"run" help:"DNS zones of services, separated by commas"`
	MeshZone string        `flag:"dns-mesh-zone" modes:"run" help:"DNS zone of clusters, with the backends of one cluster, the nodes, and the names of addresses; default: none"`
	TTL      time.Duration `flag:"dns-ttl" modes:"run" help:"TTL of answers, in whole seconds, at most 1h"`
	Answers  uint32        `flag:"dns-max-backends" modes:"run" help:"maximum number of backends in an answer"`
	Clients  string        `flag:"dns-clients" modes:"run" help:"networks of permitted clients, separated by commas; default: loopback, private, link-local and shared networks, and those of the own cluster"`
	Queries  uint32        `flag:"dns-max-queries" rule:"permits clients" modes:"run" help:"maximum number of queries at the same time; at most 25 % of them from one client"`
}

// XDSConfig is the xDS server (docs/xds.md). Over TCP it has the certificate of the API.
type XDSConfig struct {
	Address        string        `flag:"xds" modes:"run" help:"address of the xDS server for gRPC clients and Envoy, such as 127.0.0.1:9980 or unix:/run/mesh-agent/xds.sock (docs/xds.md); default: no server"`
	Streams        uint32        `flag:"xds-max-streams" rule:"permits clients" modes:"run" help:"maximum number of xDS streams at the same time; each client has one"`
	StreamsPerPeer uint32        `flag:"xds-max-streams-per-peer" rule:"permits clients" modes:"run" help:"maximum number of xDS streams from one address (an IPv6 /64); all loopback addresses together: 75 % of --xds-max-streams"`
	Names          uint32        `flag:"xds-max-names" rule:"permits clients" modes:"run" help:"maximum number of names of one type that one xDS stream may subscribe to"`
	Outliers       time.Duration `flag:"xds-outlier-detection" modes:"run" help:"interval at which xDS clients look for backends whose calls fail, and leave them for a while, such as 10s; 0: never (docs/xds.md)"`
	Memory         string        `flag:"xds-max-memory" modes:"run" help:"memory limit for what xDS clients make the agent keep, such as 64Mi (an estimate); one address has 25 % of it (docs/xds.md)"`
}

// Bounds of the interval of outlier detection, which clients carry out.
const (
	minOutliers = 100 * time.Millisecond
	maxOutliers = time.Hour
)

// defaultServing returns the configuration without any setting.
func defaultServing() ServingConfig {
	return ServingConfig{
		DNS: DNSConfig{Zones: dnsserver.DefaultZone, TTL: dnsserver.DefaultTTL, Answers: dnsserver.DefaultAnswers, Queries: dnsserver.DefaultQueries},
		XDS: XDSConfig{Streams: xdsserver.DefaultStreams, StreamsPerPeer: xdsserver.DefaultStreamsPerPeer, Names: xdsserver.DefaultNames, Memory: quantity(xdsserver.DefaultMemory)},
	}
}

// Asker returns the client for whom backends are chosen.
func (f Flags) Asker() backends.Asker {
	a := backends.Asker{Zone: f.Serving.Zone}
	if f.Serving.SameNodeFirst {
		a.Node = f.NodeName
	}
	return a
}

// clientNetworks returns the networks of permitted clients; nil for the default ones.
func clientNetworks(text string) (all []netip.Prefix, err error) {
	for _, text := range list(text) {
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

func (c *Config) parseDNS(wrong *mistakes) {
	d := c.Serving.DNS
	if d.Address != "" {
		wrong.note("dns", checkAddress(d.Address, "127.0.0.1:5353"))
	}
	if c.DNSZones = list(d.Zones); len(c.DNSZones) == 0 {
		wrong.note("dns-zones", errors.New("give at least one zone, such as "+dnsserver.DefaultZone))
	} else {
		wrong.note("dns-zones/dns-mesh-zone", dnsserver.CheckZones(c.DNSZones, d.MeshZone))
	}
	if d.TTL < 0 || d.TTL > maxTTL || d.TTL%time.Second != 0 {
		wrong.note("dns-ttl", fmt.Errorf("%s is not a number of whole seconds up to %s", d.TTL, maxTTL))
	}
	if d.Answers == 0 || d.Answers > 1000 {
		wrong.note("dns-max-backends", fmt.Errorf("%d is not within 1 and 1000", d.Answers))
	}
	c.DNSClients = parsed(wrong, "dns-clients", clientNetworks, d.Clients)
}

func (c *Config) parseXDS(wrong *mistakes) {
	x := c.Serving.XDS
	tcp, socket := xdsserver.SplitAddress(x.Address)
	switch host, _, err := net.SplitHostPort(tcp); {
	case x.Address == "" || socket != "":
	case tcp == "":
		wrong.note("xds", errors.New("unix: is followed by the path of a socket, such as unix:/run/mesh-agent/xds.sock"))
	case err != nil:
		wrong.note("xds", checkAddress(tcp, "127.0.0.1:9980, or unix:/run/mesh-agent/xds.sock"))
	default:
		wrong.note("xds", c.Listening.checkHost(host, tcp, "a loopback address such as 127.0.0.1:9980 or on a unix socket"))
	}
	if x.Outliers != 0 && (x.Outliers < minOutliers || x.Outliers > maxOutliers) {
		wrong.note("xds-outlier-detection", fmt.Errorf("%s is not 0, nor within %s and %s", x.Outliers, minOutliers, maxOutliers))
	}
	c.XDSMemory = parsed(wrong, "xds-max-memory", xdsMemory, x.Memory)
}

func xdsMemory(text string) (int64, error) {
	n, err := budget.ParseSize(text)
	if err == nil && n < xdsserver.MinMemory {
		err = fmt.Errorf("%s would refuse clients with a few names: give at least %s", text, quantity(xdsserver.MinMemory))
	}
	return n, err
}

// checkAddress accepts HOST:PORT.
func checkAddress(address, example string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fmt.Errorf("%q is no address with a port, such as %s", address, example)
	}
	return nil
}
