package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/dnsserver"
	"github.com/mesh-agent/mesh-agent/pkg/xdsserver"
)

// ServingConfig is about who connects to services by what the agent knows.
type ServingConfig struct {
	Zone          string    `mapstructure:"zone" help:"run: zone of this node; backends in it are chosen before others that are as good, none when it is not given"`
	SameNodeFirst bool      `mapstructure:"same-node-first" help:"run: backends on this node are chosen before those in its zone"`
	DNS           DNSConfig `mapstructure:",squash"`
	XDS           XDSConfig `mapstructure:",squash"`
}

// DNSConfig is the DNS server (docs/dns.md).
type DNSConfig struct {
	Address  string        `mapstructure:"dns" help:"run: answer DNS questions about services on this address, such as 127.0.0.1:5353 (docs/dns.md); nothing without it"`
	Zones    string        `mapstructure:"dns-zones" help:"run: the zones in which services have names, with commas"`
	MeshZone string        `mapstructure:"dns-mesh-zone" help:"run: a zone for the clusters themselves: one cluster's backends, nodes, and names of addresses; none when it is not given"`
	TTL      time.Duration `mapstructure:"dns-ttl" help:"run: how long an answer may be kept, in whole seconds up to an hour"`
	Answers  uint32        `mapstructure:"dns-max-backends" help:"run: how many backends an answer has at the most"`
	Clients  string        `mapstructure:"dns-clients" help:"run: networks of those who may ask, with commas; those that are not on the internet when it is not given"`
	Queries  uint32        `mapstructure:"dns-max-queries" help:"run: how many questions are answered at once"`
}

// XDSConfig is the xDS server (docs/xds.md). Over TCP it has the certificate of the API.
type XDSConfig struct {
	Address        string `mapstructure:"xds" help:"run: tell gRPC programs and Envoys where services are on this address, such as 127.0.0.1:9980 or unix:/run/mesh-agent/xds.sock (docs/xds.md); nothing without it"`
	Streams        uint32 `mapstructure:"xds-max-streams" help:"run: how many xDS streams there may be at once; each client has one"`
	StreamsPerPeer uint32 `mapstructure:"xds-max-streams-per-peer" help:"run: how many of them one address may have (an IPv6 /64); loopback is not counted"`
	Names          uint32 `mapstructure:"xds-max-names" help:"run: how many names of one type an xDS stream may follow"`
}

// defaultServing is the configuration without any setting.
func defaultServing() ServingConfig {
	return ServingConfig{
		DNS: DNSConfig{Zones: dnsserver.DefaultZone, TTL: dnsserver.DefaultTTL, Answers: dnsserver.DefaultAnswers, Queries: dnsserver.DefaultQueries},
		XDS: XDSConfig{Streams: xdsserver.DefaultStreams, StreamsPerPeer: xdsserver.DefaultStreamsPerPeer, Names: xdsserver.DefaultNames},
	}
}

// Asker is for whom backends are chosen.
func (c Config) Asker() backends.Asker {
	a := backends.Asker{Zone: c.Serving.Zone}
	if c.Serving.SameNodeFirst {
		a.Node = c.NodeName
	}
	return a
}

// ZoneNames are the zones of services; there is at least one.
func (c DNSConfig) ZoneNames() []string { return list(c.Zones) }

// ClientNetworks are those of who may ask; nil for the default ones.
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

// list is a text with commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// maxTTL is the most that an answer may be kept: what has changed since is not seen.
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
		note("dns-max-queries", errors.New("0 would refuse everybody: give at least 1"))
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
		note("xds", fmt.Errorf("%q may be reached by other machines, and nobody would be asked who they are: listen on a loopback address such as 127.0.0.1:9980 or on a unix socket, "+
			"or give --tls-cert-file, --tls-key-file and --tls-client-ca-file, or --listen-insecure if everyone there may read everything", tcp))
	}
	for flag, n := range map[string]uint32{"xds-max-streams": c.Streams, "xds-max-streams-per-peer": c.StreamsPerPeer, "xds-max-names": c.Names} {
		if n == 0 {
			note(flag, errors.New("0 would refuse everybody: give at least 1"))
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
