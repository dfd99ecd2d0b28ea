package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/expiry"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// readInterval is how often the files are read when no client connects.
const readInterval = time.Minute

// NoticeCodes are the codes that a notice may have.
func NoticeCodes() []codes.Code {
	return []codes.Code{codes.ListenerFilesUnusable, codes.ListenerCertificateEndsSoon, codes.ListenerCertificateEnds}
}

// Certificates reads the files, as a new connection does, and returns their state. It is nil for a nil TLS.
func (t *TLS) Certificates(now time.Time) *api.ListenerCertificates {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &api.ListenerCertificates{Notices: []codes.Notice{}}
	if err := t.read(); err != nil {
		c.Notices = append(c.Notices, codes.ListenerFilesUnusable.Notice(fmt.Sprintf("since %s, the files on disk cannot be used, and those of before stay in use: %v",
			t.since.UTC().Format(time.RFC3339), err)))
	}
	if t.config == nil {
		return c
	}
	leaf := t.chain[0]
	if leaf.NotBefore.After(now) {
		c.Notices = append(c.Notices, codes.ListenerFilesUnusable.Notice(fmt.Sprintf("the certificate %s is not valid before %s: clients refuse it",
			t.files.Cert, leaf.NotBefore.UTC().Format(time.RFC3339))))
	}
	c.Server = &leaf.NotAfter
	for _, above := range t.chain[1:] {
		if c.Authority == nil || above.NotAfter.Before(*c.Authority) {
			c.Authority = &above.NotAfter
		}
	}
	for _, one := range t.authorities {
		if c.ClientAuthority == nil || one.NotAfter.After(*c.ClientAuthority) {
			c.ClientAuthority = &one.NotAfter
		}
	}
	noticeEnds(c, &t.files, now)
	return c
}

// noticeEnds adds the notices about certificates that expire soon, the urgent ones first.
func noticeEnds(c *api.ListenerCertificates, files *TLSFiles, now time.Time) {
	var later []codes.Notice
	for _, one := range []struct {
		of    string
		until *time.Time
	}{
		{"the certificate " + files.Cert, c.Server},
		{"a certificate above the first one in " + files.Cert, c.Authority},
		{"the last authority of clients in " + files.ClientCA, c.ClientAuthority},
	} {
		if one.until == nil {
			continue
		}
		switch text, urgent := expiry.Notice(one.of, *one.until, now, ""); {
		case urgent:
			c.Notices = append(c.Notices, codes.ListenerCertificateEndsSoon.Notice(text))
		case text != "":
			later = append(later, codes.ListenerCertificateEnds.Notice(text))
		}
	}
	c.Notices = append(c.Notices, later...)
}

// Follow reads the files each minute until ctx ends, so that unusable files are reported and logged also when no
// client connects.
func (t *TLS) Follow(ctx context.Context, report func(error)) error {
	for {
		t.mu.Lock()
		err := t.read()
		t.mu.Unlock()
		report(err)
		if err := waiting.Sleep(ctx, readInterval); err != nil {
			return err
		}
	}
}

// Collector returns the metrics of the certificates, to be registered once.
func (t *TLS) Collector() prometheus.Collector {
	return &certificatesCollector{
		t: t,
		ends: prometheus.NewDesc("mesh_agent_listener_certificate_expiry_timestamp_seconds",
			"When a certificate of the listeners with TLS expires, in seconds since 1970: the server's, the first above it in its file (authority), or the last authority of clients (client-authority).", []string{"certificate"}, nil),
		notices: prometheus.NewDesc("mesh_agent_listener_notice", "1 while there is a notice with this code (docs/codes.md) about the certificates of the listeners, else 0.", []string{"code"}, nil),
	}
}

type certificatesCollector struct {
	t             *TLS
	ends, notices *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *certificatesCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.ends
	ch <- c.notices
}

// Collect implements prometheus.Collector.
func (c *certificatesCollector) Collect(ch chan<- prometheus.Metric) {
	now := c.t.Certificates(time.Now())
	for of, until := range map[string]*time.Time{"server": now.Server, "authority": now.Authority, "client-authority": now.ClientAuthority} {
		if until != nil {
			ch <- prometheus.MustNewConstMetric(c.ends, prometheus.GaugeValue, float64(until.Unix()), of)
		}
	}
	is := make(map[codes.Code]float64)
	for _, n := range now.Notices {
		is[codes.Code(n.Code)] = 1
	}
	for _, code := range NoticeCodes() {
		ch <- prometheus.MustNewConstMetric(c.notices, prometheus.GaugeValue, is[code], string(code))
	}
}
