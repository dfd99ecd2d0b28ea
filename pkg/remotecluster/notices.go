package remotecluster

import (
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/expiry"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Notice is about a problem of a cluster that will, or may, occur, or about a state that may be
// unintended. It is not a problem yet.
type Notice struct {
	Code    codes.Code
	Message string // text for the user
}

// NoticeCodes returns the codes that a notice may have, with the one that pkg/clustermesh adds for broken client files.
func NoticeCodes() []codes.Code {
	return []codes.Code{codes.ClientFileBroken, codes.ServerRelease, codes.CertificateEnds, codes.CertificateEndsSoon, codes.NextConnectionFails, codes.EtcdFull, codes.AddressesOnly}
}

// notices returns the notices of the cluster at this moment, the more urgent ones first.
func (j *judgment) notices() []Notice {
	if j.state.draining {
		return nil
	}
	var soon, later []Notice
	handshake := at(j.facts.handshake)
	for _, c := range []struct {
		of     string
		until  time.Time
		unless string // restriction at the end of the text, for a certificate that may have been replaced since
	}{
		{"the client certificate", j.status.Certificate, ""},
		{"the certificate that the etcd showed at " + handshake, j.status.ServerCertificate, ", unless the etcd has a newer one by now"},
		{"a certificate above that of the etcd, as of " + handshake + ",", j.status.AuthorityCertificate, ", unless the etcd has a newer one by now"},
	} {
		switch text, urgent := expiry.Notice(c.of, c.until, j.now, c.unless); {
		case text == "", c.unless == "" && c.until.Before(j.now): // expired: it is a problem already, and the message reports it
		case urgent:
			soon = append(soon, Notice{codes.CertificateEndsSoon, text})
		default:
			later = append(later, Notice{codes.CertificateEnds, text})
		}
	}
	if j.state.open && j.state.next != "" {
		soon = append([]Notice{notice(codes.NextConnectionFails, "the next connection fails, with the files as they are: %s", j.state.next)}, soon...)
	}
	all := append(soon, later...)
	if j.facts.noSpace && !j.rules.own { // the own cluster is degraded by this
		all = append([]Notice{notice(codes.EtcdFull, "its etcd has no space left and refuses all writes (alarm NOSPACE): what we know of it no longer changes")}, all...)
	}
	if j.facts.faults != "" {
		all = append(all, notice(codes.ServerRelease, "its etcd %s", j.facts.faults))
	}
	if n := j.addressesAlone(); n > 0 {
		all = append(all, notice(codes.AddressesOnly, "it publishes addresses only (%d): no nodes, services or identities", n))
	}
	return all
}

// addressesAlone returns the number of addresses of a ready cluster that publishes addresses, but no
// nodes, services or identities; 0 for any other cluster.
func (j *judgment) addressesAlone() int {
	if !j.status.Ready {
		return 0
	}
	of := j.status.Families
	for _, r := range []wire.Resource{wire.Nodes, wire.Services, wire.Identities} {
		if is, read := of[r]; !read || !is.Synced || is.Count > 0 || is.Rejected > 0 {
			return 0
		}
	}
	return of[wire.IPs].Count
}

func notice(code codes.Code, format string, args ...any) Notice {
	why := because(code, format, args...)
	return Notice{why.code, why.text}
}
