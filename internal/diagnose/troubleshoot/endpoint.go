package troubleshoot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

const (
	remedyResolve = "ask whether the DNS servers of this machine answer (/etc/resolv.conf), or add the name to cilium-host-aliases"
	remedyConnect = "check the address, and that this machine may connect to it"
)

// endpoint is the check of one endpoint. Its steps are done one after another by one goroutine.
type endpoint struct {
	*check
	attempt int
	url     string
	steps   []Step

	network    string   // tcp or unix
	host, port string   // the host is empty for a socket
	addrs      []string // to dial
	conn       net.Conn // to the first of them that answers
	good       string   // that one
	seen       handshake
	session    *etcd.Session // nil without one
}

// run does the steps. After a step that fails, the later ones are not tried, with one exception: a server's
// certificate that the agent refuses says nothing about whether the server accepts ours.
func (e *endpoint) run(ctx context.Context) {
	failed := ""
	if e.refused == StepFile {
		failed = StepFile
	}
	for _, step := range []struct {
		name string
		do   func(context.Context, *Step)
	}{
		{StepResolve, e.resolve},
		{StepTCP, e.connect},
		{StepTLS, e.handshake},
		{StepServerCertificate, e.verify},
		{StepAccepted, e.accepted},
		{StepEtcd, e.etcd},
	} {
		s := Step{Name: step.name, Endpoint: e.url, State: OK}
		if failed == "" || failed == StepServerCertificate && step.name == StepAccepted {
			step.do(ctx, &s)
		} else {
			s.after(failed)
		}
		if s.State == Failed && failed == "" {
			failed = step.name
		}
		e.steps = append(e.steps, s)
	}
}

func (e *endpoint) close() {
	if e.conn != nil {
		_ = e.conn.Close()
	}
	if e.session != nil {
		e.session.Close()
	}
}

// resolve finds the addresses, in the way of the agent's dialer.
func (e *endpoint) resolve(ctx context.Context, s *Step) {
	if path, ok := socketOf(e.url); ok {
		e.network, e.addrs = "unix", []string{path}
		s.found("a socket of this machine: " + path)
		return
	}
	hostPort := e.url
	if strings.Contains(e.url, "://") {
		u, err := url.Parse(e.url)
		if err != nil {
			s.failed(err, codes.ClientFileEndpoints, remedyFile)
			return
		}
		hostPort = u.Host
	}
	var err error
	if e.host, e.port, err = net.SplitHostPort(hostPort); err != nil {
		s.failed(err, codes.ClientFileEndpoints, remedyFile)
		return
	}
	e.network = "tcp"
	ips, how, err := e.addresses(ctx)
	switch {
	case err != nil && hint.Code(err) == codes.HostUnknown:
		s.failed(err, "", "")
		return
	case err != nil:
		s.tell(codes.ResolverFails, err.Error(), remedyResolve)
		return
	}
	var texts []string
	for _, ip := range ips {
		texts = append(texts, ip.String())
		e.addrs = append(e.addrs, net.JoinHostPort(ip.String(), e.port))
	}
	s.found(strings.Join(texts, ", ") + how)
}

// socketOf returns the path of a unix socket as the agent's dialer has it.
func socketOf(url string) (path string, ok bool) {
	for _, scheme := range []string{"unix:", "unixs:"} {
		if path, ok := strings.CutPrefix(url, scheme); ok {
			return strings.TrimPrefix(path, "//"), true
		}
	}
	return "", false
}

func (e *endpoint) addresses(ctx context.Context) (ips []netip.Addr, how string, err error) {
	if i := slices.IndexFunc(e.cfg.HostAliases, func(a clientfile.HostAlias) bool { return a.Hostname == e.host }); i >= 0 {
		return e.cfg.HostAliases[i].IPs, " (by cilium-host-aliases)", nil
	}
	if ip, err := netip.ParseAddr(e.host); err == nil {
		return []netip.Addr{ip}, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.o.Timings.Resolve)
	defer cancel()
	found, err := e.o.Resolve(ctx, e.host)
	if err == nil && len(found) == 0 {
		err = errors.New("no address for " + e.host)
	}
	for _, ip := range found {
		if ip = ip.Unmap(); !slices.Contains(ips, ip) {
			ips = append(ips, ip)
		}
	}
	return ips, " (by name)", err
}

// connect tries every address. One that does not answer is a warning while
// another one does: the agent tries them one after another.
func (e *endpoint) connect(ctx context.Context, s *Step) {
	ctx, cancel := context.WithTimeout(ctx, e.o.Timings.Dial)
	defer cancel()
	conns, errs := make([]net.Conn, len(e.addrs)), make([]error, len(e.addrs))
	var all sync.WaitGroup
	for i, addr := range e.addrs {
		all.Go(func() { conns[i], errs[i] = e.o.Dial(ctx, e.network, addr) })
	}
	all.Wait()
	for i, addr := range e.addrs {
		switch {
		case errs[i] != nil: // judged below, by whether another one answers
		case e.conn == nil:
			e.conn, e.good = conns[i], addr
			s.found("connected to " + addr)
		default:
			_ = conns[i].Close()
			s.found(addr)
		}
	}
	for _, err := range errs {
		switch {
		case err == nil:
		case e.conn != nil:
			s.tell(codes.SomeAddressesFail, err.Error(), cmp.Or(hint.Text(err), remedyConnect))
		default:
			s.tell(codeOfDial(err), err.Error(), cmp.Or(hint.Text(err), remedyConnect))
		}
	}
}

func codeOfDial(err error) codes.Code {
	switch code := hint.Code(err); code {
	case codes.ConnectionRefused, codes.ConnectionNoRoute, codes.ConnectionUnanswered:
		return code
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.ConnectionUnanswered
	}
	return codes.ConnectionFails
}

// dial is how the session of this endpoint connects: to the address that has answered.
func (e *endpoint) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return e.o.Dial(ctx, e.network, e.good)
}

func (e *endpoint) etcd(ctx context.Context, s *Step) {
	if e.refused != "" {
		s.after(e.refused)
		return
	}
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS, o.PageLimit, o.Dial = 0, 0, 1, e.dial
	o.Timings.Connect, o.Timings.Dial, o.Timings.Close = e.o.Timings.Etcd, e.o.Timings.Etcd*4/5, closing
	o.Timings.Read, o.Timings.Page, o.Timings.Probe = e.o.Timings.Read, e.o.Timings.Read, e.o.Timings.Read
	var err error
	if e.session, err = etcd.Reach(ctx, e.cfg, e.attempt, o); err != nil {
		if ke, ok := errors.AsType[*kvstore.KeyError](err); ok {
			err = ke.Err // the step names the endpoint and the remedy already
		}
		s.failed(err, codes.EtcdFails, remedyEtcd)
		return
	}
	st := e.session.Status()
	if st.EtcdClusterID != 0 {
		s.found(fmt.Sprintf("etcd cluster ID %x", st.EtcdClusterID))
	}
	switch {
	case st.Server.Version != "":
		s.found("version " + st.Server.Version)
	case st.Server.Error != "":
		s.found("its version is not known: " + st.Server.Error)
	}
	if st.Server.Faults != "" {
		s.tell(codes.ServerRelease, "its release "+st.Server.Faults, "")
	}
	for _, alarm := range st.Server.Alarms {
		s.tell(codes.EtcdAlarm, "it complains: "+alarm, "")
	}
}

const remedyEtcd = "look at the etcd of that cluster and at its log"
