package dnsserver

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/quota"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
)

// ownerOf is who counts as one client: a peer, and on a link each address, since machines share its network.
func ownerOf(a netip.Addr) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone("")
	}
	return transport.Peer(a)
}

// isAnswerable reports whether an answer to an address reaches one machine. Others are forged.
func isAnswerable(a netip.AddrPort) bool {
	ip := a.Addr()
	return a.Port() != 0 && ip.IsValid() && !ip.IsUnspecified() && !ip.IsMulticast() && ip != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// admits reports whether an address may ask. No remote cluster has a say in that.
func (s *Server) admits(peer netip.Addr) bool {
	return slices.ContainsFunc(s.clients, func(p netip.Prefix) bool { return p.Contains(peer) }) || s.ownToo && s.names.view.IPs.IsOwn(peer)
}

// notAdmitted counts a client that may not ask, and says so now and then.
func (s *Server) notAdmitted(peer netip.Addr) {
	s.metrics.notPermitted.Inc()
	s.refusals.Do(func() {
		s.log.Warn("Refused a DNS query of a client that is in no permitted network: add the network to --dns-clients if it may ask", "client", peer)
	})
}

// places are a number of something, with a share for each client.
type places struct {
	*quota.Quota[netip.Addr]
	all, own prometheus.Counter // what was refused, by bound
}

// take takes a place for a client until it is given back.
func (p places) take(peer netip.Addr) bool {
	err := p.Take(ownerOf(peer), 1)
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

func (p places) give(peer netip.Addr) { p.Give(ownerOf(peer), 1) }
