package bugreport

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// meshDirectory adds the client files, and the certificates that they name, without secrets. It reads them itself, so
// it must run on the agent's machine and in its file system.
func (r *report) meshDirectory(ctx context.Context) error {
	if r.status != nil && r.status.Agent.Mode == string(config.ModeOperate) {
		return nil // operate reads no client files
	}
	dir := config.Default().ClustermeshConfig
	if r.status != nil {
		dir = cmp.Or(r.status.Agent.MeshDirectory, dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the mesh directory cannot be read from here: %w", err)
	}
	var files, certificates strings.Builder
	var named []clientfile.Shown
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		path := filepath.Join(dir, e.Name())
		files.WriteString(fileLine(path))
		// Keys and certificates may be in the directory of the client files, whose names are cluster names. No other
		// file is opened.
		if wire.ValidateClusterName(e.Name()) != nil {
			continue
		}
		shown, err := showClientFile(path)
		if err != nil {
			r.fail("mesh/"+e.Name(), err)
			continue
		}
		r.archive.add("mesh/"+e.Name()+".yaml", "what may be shown of a client file", shown.Text)
		named = append(named, shown)
	}
	certs, keys := paths(named)
	for _, path := range certs {
		fmt.Fprintf(&certificates, "%s%s\n\n", fileLine(path), strings.TrimRight(describeCertificates(path), "\n"))
	}
	for _, path := range keys {
		fmt.Fprintf(&certificates, "%s  a private key, not opened\n\n", fileLine(path))
	}
	r.archive.add("mesh/files.txt", "the files of "+dir, []byte(files.String()))
	r.archive.add("mesh/certificates.txt", "the public parts of the certificates in use", []byte(certificates.String()))
	return nil
}

// fileLine describes a file without opening it.
func fileLine(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("%s: %v\n", path, err)
	}
	target := ""
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		target = " -> " + real
	}
	return fmt.Sprintf("%s%s: %s, %d bytes, changed %s\n", path, target, info.Mode(), info.Size(), info.ModTime().UTC().Format(time.RFC3339))
}

const maxOpened = 1 << 20 // bytes of a file that is opened

func openRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxOpened {
		return nil, fmt.Errorf("%s is no regular file of at most %d bytes", path, maxOpened)
	}
	return os.ReadFile(path)
}

func showClientFile(path string) (clientfile.Shown, error) {
	content, err := openRegular(path)
	if err != nil {
		return clientfile.Shown{}, err
	}
	shown, ok := clientfile.Show(content)
	if !ok || !bytes.Contains(content, []byte("endpoints:")) {
		return clientfile.Shown{}, errors.New("it is no client file that can be read, so nothing of it is shown")
	}
	return shown, nil
}

// paths returns the files that client files name, sorted. A key file is never among the certificates.
func paths(files []clientfile.Shown) (certs, keys []string) {
	for _, f := range files {
		keys = append(keys, f.KeyFile)
		certs = append(certs, f.TrustedCAFile, f.CertFile)
	}
	slices.Sort(keys)
	slices.Sort(certs)
	keys = slices.DeleteFunc(slices.Compact(keys), func(path string) bool { return path == "" })
	return slices.DeleteFunc(slices.Compact(certs), func(path string) bool { return path == "" || slices.Contains(keys, path) }), keys
}

// describeCertificates returns the public parts of the certificates of a file. For other blocks it returns only the
// type.
func describeCertificates(path string) string {
	rest, err := openRegular(path)
	if err != nil {
		return fmt.Sprintf("  cannot be read: %v\n", err)
	}
	var b strings.Builder
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			b.WriteString("  a block that is no certificate " + clientfile.LeftOut + "\n")
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			fmt.Fprintf(&b, "  a certificate that cannot be parsed: %v\n", err)
			continue
		}
		writeCertificate(&b, cert)
	}
	if b.Len() == 0 {
		return "  no certificate in it\n"
	}
	return b.String()
}

func writeCertificate(b *strings.Builder, c *x509.Certificate) {
	uris := printer.Texts(c.URIs, func(u *url.URL) string { return clientfile.Redact(u.String()) })
	names := slices.Concat(c.DNSNames, printer.Texts(c.IPAddresses, net.IP.String), c.EmailAddresses, uris)
	for _, line := range [][2]string{
		{"subject", c.Subject.String()},
		{"issuer", c.Issuer.String()},
		{"serial number", c.SerialNumber.Text(16)},
		{"valid", c.NotBefore.UTC().Format(time.RFC3339) + " to " + c.NotAfter.UTC().Format(time.RFC3339)},
		{"names", cmp.Or(strings.Join(names, ", "), "-")},
		{"authority", printer.YesNo(c.IsCA)},
		{"sha256", fmt.Sprintf("%x", sha256.Sum256(c.Raw))},
	} {
		fmt.Fprintf(b, "  %-14s%s\n", line[0], line[1])
	}
	b.WriteString("\n")
}
