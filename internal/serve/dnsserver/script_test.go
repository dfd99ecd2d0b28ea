package dnsserver_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/scripttest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var update = flag.Bool("update", false, "write what the scripts come to")

// TestScripts asks a server over real sockets; testdata/README.md has the lines of the scripts.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripttest.Run(t, *update, func() scripttest.Player {
		w := viewtest.New(t)
		return &player{World: w, server: serve(t, dnsserver.Params{View: w.View, Cluster: viewtest.Own, Zones: []string{"clusterset.local", "mesh.test"}, MeshZone: "internal.test", Asker: backends.Asker{Zone: "a"}})}
	})
}

type player struct {
	*viewtest.World
	server *dnsserver.Server
	said   strings.Builder
}

// Do runs a line of a script. In addition to the lines of a world, there is:
//
//	dig NAME TYPE [tcp]
func (p *player) Do(line string) error {
	words := strings.Fields(line)
	if words[0] != "dig" {
		return p.World.Do(line)
	}
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(words[1]), dns.StringToType[words[2]])
	q.SetEdns0(1232, false)
	c := dns.Client{Net: "udp"}
	if len(words) > 3 {
		c.Net = words[3]
	}
	m, _, err := c.Exchange(q, p.server.Address())
	if err != nil {
		return err
	}
	fmt.Fprintf(&p.said, "%s %s: %s%s\n", words[1], words[2], dns.RcodeToString[m.Rcode], extended(m))
	for i, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		var lines []string
		for _, rr := range section {
			switch rr := rr.(type) {
			case *dns.OPT:
				continue
			case *dns.SOA:
				rr.Serial = 1
			}
			lines = append(lines, "  "+[]string{"", "authority ", "additional "}[i]+strings.Join(strings.Fields(strings.Replace(rr.String(), "\tIN\t", " ", 1)), " ")+"\n")
		}
		slices.Sort(lines) // they come in turns
		p.said.WriteString(strings.Join(lines, ""))
	}
	return nil
}

func (p *player) Said() string {
	defer p.said.Reset()
	return p.said.String()
}

// extended is the extended error of an answer.
func extended(m *dns.Msg) (text string) {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				text += fmt.Sprintf(", %s: %s", dns.ExtendedErrorCodeToString[e.InfoCode], e.ExtraText)
			}
		}
	}
	return text
}

// serve runs a server until the end of the test.
func serve(t testing.TB, p dnsserver.Params) *dnsserver.Server {
	t.Helper()
	s, err := dnsserver.New(p)
	waittest.Must(t, err)
	waittest.Must(t, s.Listen("127.0.0.1:0"))
	run(t, s)
	return s
}
