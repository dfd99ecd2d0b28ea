package checks

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// inUTF16 is a text as some editors and shells write it.
func inUTF16(text string, order binary.AppendByteOrder, marked bool) string {
	var b []byte
	if marked {
		text = "\ufeff" + text
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// checkOverlooked: what other tools write as a client file, and no agent takes for one.
func checkOverlooked(t *testing.T, all *gathered) {
	const text = "endpoints:\n- http://127.0.0.1:1\n"
	overlooked := func(part string) []found { return []found{{codes.ClientFileOverlooked, part}} }
	for name, test := range map[string]struct {
		content string
		verdict string
		want    []found
	}{
		"crlf":      {strings.ReplaceAll(text, "\n", "\r\n"), WouldConnect, nil},
		"bom":       {"\xef\xbb\xbf" + text, WouldConnect, nil},
		"comment":   {"# east\n---\n" + text, WouldConnect, nil},
		"utf16le":   {inUTF16(text, binary.LittleEndian, true), WouldIgnore, overlooked("UTF-16: write it in UTF-8")},
		"utf16be":   {inUTF16(text, binary.BigEndian, true), WouldIgnore, overlooked("UTF-16")},
		"unmarked":  {inUTF16(text, binary.LittleEndian, false), WouldIgnore, overlooked("UTF-16")},
		"capitals":  {"Endpoints:\n- http://127.0.0.1:1\n", WouldIgnore, overlooked(`"Endpoints" has capital letters`)},
		"json":      {`{"endpoints": ["http://127.0.0.1:1"]}`, WouldIgnore, overlooked("without quotes")},
		"spaced":    {"endpoints :\n- http://127.0.0.1:1\n", WouldIgnore, overlooked("the colon at once")},
		"scheme":    {"endpoints:\n- HTTP://127.0.0.1:1\n", WouldConnect, nil},
		"two":       {text + "---\n" + text, WouldConnect, []found{{codes.SeveralDocuments, "it has 2 YAML documents"}}},
		"other":     {"a: b\n", WouldIgnore, nil},
		"mentions":  {"a:\n  Endpoints: b\n", WouldIgnore, nil},
		"other16":   {inUTF16("a: b\n", binary.LittleEndian, true), WouldIgnore, nil},
		"certif":    {"-----BEGIN CERTIFICATE-----\n", WouldIgnore, nil},
		"not a-one": {"Endpoints:\n- x\n", WouldIgnore, nil}, // no cluster has that name
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			waittest.Must(t, os.WriteFile(filepath.Join(w.dir, name), []byte(test.content), 0o600))
			r := w.report(time.Now())
			all.add(r)
			f := r.of(t, name)
			wantFindings(t, f.Findings, test.want)
			if f.Verdict != test.verdict {
				t.Errorf("the verdict is %s: %+v", f.Verdict, f)
			}
		})
	}
}

// checkPEM checks unusable contents of the files that a client file names.
func checkPEM(t *testing.T, all *gathered) {
	w := newWorld(t)
	lines, key := w.client("remote")
	lines = append(lines, "endpoints: ['https://x:1']")
	good, err := os.ReadFile(w.caFile)
	waittest.Must(t, err)
	secret, err := os.ReadFile(key)
	waittest.Must(t, err)
	for name, test := range map[string]struct {
		file, content string
		want          found
	}{
		"of PKCS 8":       {key, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n", found{codes.CertificateUnusable, "(openssl pkey -in " + key + " -out " + key + ".plain)"}},
		"of OpenSSL":      {key, "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n", found{codes.CertificateUnusable, "is encrypted"}},
		"a key with them": {w.caFile, string(good) + string(secret), found{codes.AuthoritiesUnusable, "it has a private key"}},
		"trusted":         {w.caFile, strings.ReplaceAll(string(good), " CERTIFICATE", " TRUSTED CERTIFICATE"), found{codes.AuthoritiesUnusable, "(openssl x509 -in " + w.caFile + " -out " + w.caFile + ".pem)"}},
	} {
		before, err := os.ReadFile(test.file)
		waittest.Must(t, err)
		waittest.Must(t, os.WriteFile(test.file, []byte(test.content), 0o600))
		w.file("c2", lines...)
		r := w.report(time.Now())
		all.add(r)
		t.Log(name)
		wantFindings(t, r.of(t, "c2").Findings, []found{test.want})
		waittest.Must(t, os.WriteFile(test.file, before, 0o600))
	}

	// The name of a file, with any characters, is one word of the command that a person copies.
	evil := filepath.Join(t.TempDir(), "key; rm -rf ~ $(id)")
	waittest.Must(t, os.WriteFile(evil, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"), 0o600))
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], key, evil)
	}
	w.file("c2", lines...)
	r := w.report(time.Now())
	wantFindings(t, r.of(t, "c2").Findings, []found{{codes.CertificateUnusable, "(openssl pkey -in '" + evil + "' -out '" + evil + ".plain')"}})
}
