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
func (c ListenConfig) TLS() (api.TLSFiles, bool) {
	return api.TLSFiles{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA}, c.TLSCert != ""
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
