package dnsserver

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/quota"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
)

// ownerOf returns the client that an address is counted for: its peer. A link-local address counts alone, since the
// machines of a link share its network.
func ownerOf(a netip.Addr) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone("")
	}
	return transport.Peer(a)
}

// isAnswerable reports whether a reply to an address reaches one machine. Other addresses are forged.
func isAnswerable(a netip.AddrPort) bool {
	ip := a.Addr()
	return a.Port() != 0 && ip.IsValid() && !ip.IsUnspecified() && !ip.IsMulticast() && ip != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// admits reports whether an address may ask. Remote clusters cannot influence this.
func (s *Server) admits(peer netip.Addr) bool {
	return slices.ContainsFunc(s.clients, func(p netip.Prefix) bool { return p.Contains(peer) }) || s.ownToo && s.names.view.IPs.IsOwn(peer)
}

// notAdmitted counts a client that may not ask, and logs it, at most once per refusalsLogged.
func (s *Server) notAdmitted(peer netip.Addr) {
	s.metrics.notPermitted.Inc()
	s.refusals.Do(func() {
		s.log.Warn("Refused a DNS query of a client that is in no permitted network: add the network to --dns-clients if it may ask", "client", peer)
	})
}

// places is a bounded number of places, of which each client has a share.
type places struct {
	*quota.Quota[netip.Addr]
	all, own prometheus.Counter // refusals, by bound
}

// take takes a place for a client, until give returns it. It reports whether there was one.
func (p places) take(peer netip.Addr) bool {
	err := p.Reserve(ownerOf(peer), 1)
	if err == nil {
		return true
	}
	if exceeded, is := errors.AsType[*quota.Exceeded](err); is && exceeded.Own {
		p.own.Inc()
	} else {
		p.all.Inc()
	}
	return false
}

func (p places) give(peer netip.Addr) { p.Release(ownerOf(peer), 1) }
