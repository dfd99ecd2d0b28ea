package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

// ListenConfig is who may ask over TCP, and how.
type ListenConfig struct {
	Insecure    bool   `mapstructure:"listen-insecure"`
	TLSCert     string `mapstructure:"tls-cert-file"`
	TLSKey      string `mapstructure:"tls-key-file"`
	TLSClientCA string `mapstructure:"tls-client-ca-file"`

	Limits ListenLimits `mapstructure:",squash"`
}

func (c ListenConfig) flags(f *pflag.FlagSet) {
	f.Bool("listen-insecure", c.Insecure, "listen in plain text also where other machines reach the address: all of them can read everything")
	f.String("tls-cert-file", c.TLSCert, "certificate of the HTTP API, which then speaks TLS on TCP; read again when it changes")
	f.String("tls-key-file", c.TLSKey, "key of that certificate")
	f.String("tls-client-ca-file", c.TLSClientCA, "authorities of those who may ask over TCP: they need a certificate of one of them")
	c.Limits.flags(f)
}

// TLS are the files of the API; false when it is plain.
func (c ListenConfig) TLS() (transport.TLSFiles, bool) {
	return transport.TLSFiles{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA}, c.TLSCert != ""
}

func (c ListenConfig) validate(note func(flag string, err error), listen string) {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		note("tls-cert-file/tls-key-file", errors.New("a certificate and its key are given together"))
	case c.TLSCert == "" && c.TLSClientCA != "":
		note("tls-client-ca-file", errors.New("clients have certificates with TLS only: give --tls-cert-file and --tls-key-file, too"))
	}
	c.Limits.validate(note)
	host, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		note("listen", fmt.Errorf("%q is no address with a port, such as %s", listen, api.DefaultListen))
	case !isLoopback(host) && c.TLSCert == "" && !c.Insecure:
		note("listen", fmt.Errorf("%q may be reached by other machines, and nobody would be asked who they are: listen on a loopback address such as %s, "+
			"or give --tls-cert-file, --tls-key-file and --tls-client-ca-file, or --listen-insecure if everyone there may read everything", listen, api.DefaultListen))
	}
}

// isLoopback tells whether an address to listen on is of this machine alone. Other
// names than localhost may mean anything.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// ListenLimits bound what those who come over TCP may have at once, in all and of one
// address (docs/api-security.md). The unix socket has no such bounds.
type ListenLimits struct {
	Connections        uint32 `mapstructure:"listen-max-connections"`
	ConnectionsPerPeer uint32 `mapstructure:"listen-max-connections-per-peer"`
	Watches            uint32 `mapstructure:"listen-max-watches"`
	WatchesPerPeer     uint32 `mapstructure:"listen-max-watches-per-peer"`
	Answers            uint32 `mapstructure:"listen-max-answers"`
	AnswersPerPeer     uint32 `mapstructure:"listen-max-answers-per-peer"`
	States             uint32 `mapstructure:"listen-max-states"`
	StatesPerPeer      uint32 `mapstructure:"listen-max-states-per-peer"`
}

// DefaultListenLimits are the limits without any setting.
func DefaultListenLimits() ListenLimits {
	d := transport.DefaultLimits()
	return ListenLimits{
		Connections: uint32(d.Connections.All), ConnectionsPerPeer: uint32(d.Connections.Peer),
		Watches: uint32(d.Watches.All), WatchesPerPeer: uint32(d.Watches.Peer),
		Answers: uint32(d.Answers.All), AnswersPerPeer: uint32(d.Answers.Peer),
		States: uint32(d.States.All), StatesPerPeer: uint32(d.States.Peer),
	}
}

// OfServer are those of the server.
func (c ListenLimits) OfServer() transport.Limits {
	limit := func(all, peer uint32) transport.Limit { return transport.Limit{All: int(all), Peer: int(peer)} }
	return transport.Limits{
		Connections: limit(c.Connections, c.ConnectionsPerPeer),
		Watches:     limit(c.Watches, c.WatchesPerPeer),
		Answers:     limit(c.Answers, c.AnswersPerPeer),
		States:      limit(c.States, c.StatesPerPeer),
	}
}

// limitFlag is one of the limits as a flag.
type limitFlag struct {
	Name  string
	Value uint32
	help  string
}

func (c ListenLimits) All() []limitFlag {
	return []limitFlag{
		{"listen-max-connections", c.Connections, "how many connections over TCP there may be at once"},
		{"listen-max-connections-per-peer", c.ConnectionsPerPeer, "how many of them one address may have (an IPv6 /64); loopback is not counted"},
		{"listen-max-watches", c.Watches, "how many watches over TCP there may be at once"},
		{"listen-max-watches-per-peer", c.WatchesPerPeer, "how many of them one address may have; loopback is not counted"},
		{"listen-max-answers", c.Answers, "how many other requests over TCP, such as lists, are answered at once"},
		{"listen-max-answers-per-peer", c.AnswersPerPeer, "how many of them one address may have; loopback is not counted"},
		{"listen-max-states", c.States, "how many watches over TCP are sent their first state, or are far behind, at once"},
		{"listen-max-states-per-peer", c.StatesPerPeer, "how many of them one address may have, loopback too"},
	}
}

func (c ListenLimits) flags(f *pflag.FlagSet) {
	for _, l := range c.All() {
		f.Uint32(l.Name, l.Value, l.help)
	}
}

func (c ListenLimits) validate(note func(flag string, err error)) {
	for _, l := range c.All() {
		if l.Value == 0 {
			note(l.Name, errors.New("0 would refuse everybody: give at least 1"))
		}
	}
}
