package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

// ListenConfig is who may ask over TCP, and how.
type ListenConfig struct {
	Insecure    bool   `mapstructure:"listen-insecure" help:"listen in plain text also where other machines reach the address: all of them can read everything"`
	TLSCert     string `mapstructure:"tls-cert-file" help:"certificate of the HTTP API, and of xDS, which then speak TLS on TCP; read again when it changes"`
	TLSKey      string `mapstructure:"tls-key-file" help:"key of that certificate"`
	UI          bool   `mapstructure:"ui" help:"serve the page that shows in a browser what the agent knows, at /ui/ of the HTTP API"`
	TLSClientCA string `mapstructure:"tls-client-ca-file" help:"authorities of those who may ask over TCP: they need a certificate of one of them"`

	Limits ListenLimits `mapstructure:",squash"`
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
	Connections        uint32 `mapstructure:"listen-max-connections" help:"how many connections over TCP there may be at once"`
	ConnectionsPerPeer uint32 `mapstructure:"listen-max-connections-per-peer" help:"how many of them one address may have (an IPv6 /64); loopback is not counted"`
	Watches            uint32 `mapstructure:"listen-max-watches" help:"how many watches over TCP there may be at once"`
	WatchesPerPeer     uint32 `mapstructure:"listen-max-watches-per-peer" help:"how many of them one address may have; loopback is not counted"`
	Answers            uint32 `mapstructure:"listen-max-answers" help:"how many other requests over TCP, such as lists, are answered at once"`
	AnswersPerPeer     uint32 `mapstructure:"listen-max-answers-per-peer" help:"how many of them one address may have; loopback is not counted"`
	States             uint32 `mapstructure:"listen-max-states" help:"how many watches over TCP are sent their first state, or are far behind, at once"`
	StatesPerPeer      uint32 `mapstructure:"listen-max-states-per-peer" help:"how many of them one address may have, loopback too"`
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

func (c ListenLimits) validate(note func(flag string, err error)) {
	for field, v := range reflect.ValueOf(c).Fields() {
		if v.Uint() == 0 {
			note(field.Tag.Get("mapstructure"), errors.New("0 would refuse everybody: give at least 1"))
		}
	}
}
