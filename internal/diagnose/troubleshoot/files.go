package troubleshoot

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// The general remedies for files, when no more is known.
const (
	remedyFile        = "correct the named part, then run 'mesh-agent config check'"
	remedyCertificate = "cert-file and key-file must hold, in PEM form, a certificate and its private key"
)

// files are the steps that need no connection.
func (c *check) files() []Step {
	file, authorities, certificate := c.clientFile(), c.authorities(), c.certificate()
	if c.refused == "" {
		// The agent's own word, should it see something that these did not.
		cfg, err := c.load(clientfile.Load)
		if err != nil {
			c.refuse(&file, err, codes.ClientFileOption, remedyFile)
		} else {
			c.cfg = cfg
		}
	}
	return []Step{file, authorities, certificate}
}

func (c *check) load(read func(path string) (*clientfile.Config, error)) (*clientfile.Config, error) {
	if c.target.Path == "" {
		return clientfile.New(c.target.Addresses...)
	}
	cfg, err := read(c.target.Path)
	if err != nil || len(c.target.Addresses) == 0 {
		return cfg, err
	}
	return cfg.WithEndpoints(c.target.Addresses...)
}

// refuse ends a step with the error with which the agent refuses the configuration.
func (c *check) refuse(s *Step, err error, code codes.Code, remedy string) {
	if c.refused == "" {
		c.refused = s.Name
	}
	problems := []error{err}
	if refused, ok := errors.AsType[*clientfile.Error](err); ok {
		problems = refused.Problems // the file is named already
	}
	for _, p := range problems {
		s.failed(p, code, remedy)
	}
}

func (c *check) clientFile() Step {
	s := Step{Name: StepFile, State: OK}
	s.found(c.target.Path)
	var err error
	if c.cfg, err = c.load(clientfile.Parse); err != nil {
		c.refuse(&s, err, codes.ClientFileOption, remedyFile)
		return s
	}
	s.found(fmt.Sprintf("%s, as %s", printer.Count(len(c.cfg.Endpoints), "endpoint"), c.cfg.User()))
	return s
}

// needsTLS skips a step about TLS if no endpoint uses it, and reports whether one does.
func (c *check) needsTLS(s *Step) bool {
	switch {
	case c.cfg == nil:
		s.after(StepFile)
	case !slices.ContainsFunc(c.cfg.Endpoints, c.cfg.UsesTLS):
		s.skip("no endpoint uses TLS")
	default:
		return true
	}
	return false
}

func (c *check) authorities() Step {
	s := Step{Name: StepAuthorities, State: OK}
	if !c.needsTLS(&s) {
		return s
	}
	if _, err := c.cfg.ClientTLS(); err != nil {
		c.refuse(&s, err, codes.AuthoritiesUnusable, "")
		return s
	}
	security, _ := c.cfg.Security() // problems of the other files are reported in their own steps
	if security.CAFile == "" {
		s.found("no trusted-ca-file: the authorities that this system trusts")
		return s
	}
	s.found(security.CAFile)
	if len(security.Authorities) == 0 {
		return s // insecure-transport: they are not looked at
	}
	last := slices.MaxFunc(security.Authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	c.judgeDates(&s, "the authority "+last.Subject.CommonName, last, dates{codes.AuthoritiesExpired, codes.AuthoritiesExpired, codes.AuthoritiesExpireSoon})
	return s
}

func (c *check) certificate() Step {
	s := Step{Name: StepCertificate, State: OK}
	if !c.needsTLS(&s) {
		return s
	}
	security, _ := c.cfg.Security() // the next line reports the error more precisely
	if err := c.cfg.CheckCertificate(); err != nil {
		c.refuse(&s, err, codes.CertificateUnusable, remedyCertificate)
	} else if security.CertFile == "" {
		s.found("the client file names none")
	}
	for i, cert := range security.Chain {
		what := fmt.Sprintf("%s, signed by %s,", cert.Subject.CommonName, cert.Issuer.CommonName)
		if i > 0 {
			what = "the authority " + cert.Subject.CommonName
		}
		c.judgeDates(&s, what, cert, dates{codes.CertificateExpired, codes.CertificateNotYetValid, codes.CertificateExpiresSoon})
	}
	return s
}

type dates struct{ expired, notYet, soon codes.Code }

func (c *check) judgeDates(s *Step, what string, cert *x509.Certificate, found dates) {
	v := clientfile.ValidityOf(cert, c.o.Now)
	text := what + " " + v.Text
	switch {
	case v.NotYet:
		s.tell(found.notYet, text, v.Remedy)
	case v.Invalid:
		s.tell(found.expired, strings.TrimSpace(text), v.Remedy)
	case v.Soon:
		s.tell(found.soon, text, v.Remedy)
	default:
		s.found(text)
	}
}
