package hint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// TestCode: the finding of the cause, which is more exact, has priority over that of the place of the error.
func TestCode(t *testing.T) {
	t.Parallel()
	pair := []string{"cert-file: /nonexistent/c", "key-file: /nonexistent/k"}
	for name, c := range map[string]struct {
		lines []string
		want  []codes.Code
	}{
		"no YAML":               {[]string{"endpoints: [x"}, []codes.Code{codes.ClientFileNoYAML}},
		"an option twice":       {[]string{"endpoints: ['http://a:1']", "username: a", "username: b"}, []codes.Code{codes.ClientFileNoYAML}},
		"a list":                {[]string{"- endpoints: x"}, []codes.Code{codes.ClientFileNoYAML}},
		"an unknown option":     {[]string{"endpoints: ['http://a:1']", "x: 1"}, []codes.Code{codes.ClientFileOption}},
		"a wrong type":          {[]string{"endpoints: ['http://a:1']", "username: [x]"}, []codes.Code{codes.ClientFileOption}},
		"an alias of no name":   {[]string{"endpoints: ['http://a:1']", "cilium-host-aliases: [{ips: ['::1']}]"}, []codes.Code{codes.ClientFileOption}},
		"no endpoints, no user": {[]string{"endpoints: []", "password: x"}, []codes.Code{codes.ClientFileEndpoints, codes.ClientFileUser}},
		"missing files":         {append(pair, "endpoints: ['https://a:1']", "trusted-ca-file: /nonexistent/a"), []codes.Code{codes.FileMissing, codes.FileMissing, codes.FileMissing}},
		"no files":              {[]string{"endpoints: ['https://a:1']", "trusted-ca-file: /"}, []codes.Code{codes.AuthoritiesUnusable}},
		"a key alone":           {append(pair[1:2:2], "endpoints: ['https://a:1']"), []codes.Code{codes.CertificateAlone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "c")
			if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := clientfile.Load(path)
			refused, ok := errors.AsType[*clientfile.Error](err)
			if !ok || Code(err) != c.want[0] {
				t.Fatalf("%q: %v", Code(err), err)
			}
			if !slices.EqualFunc(refused.Problems, c.want, func(p error, want codes.Code) bool { return Code(p) == want }) {
				t.Errorf("want %q: %v", c.want, err)
			}
		})
	}
	if got := Code(Failed("get", "k", kvstore.ErrPermissionDenied)); got != codes.RightsMissing {
		t.Error(got)
	}
}

// TestAlerts: only alerts about our client certificate have the finding about it (RFC 8446, 6.2).
func TestAlerts(t *testing.T) {
	t.Parallel()
	for alert, want := range map[string]codes.Code{
		"bad certificate": codes.ClientCertificateRefused, "unsupported certificate": codes.ClientCertificateRefused, "revoked certificate": codes.ClientCertificateRefused,
		"expired certificate": codes.ClientCertificateRefused, "unknown certificate": codes.ClientCertificateRefused, "unknown certificate authority": codes.ClientCertificateRefused,
		"access denied": codes.ClientCertificateRefused, "error decrypting message": codes.ClientCertificateRefused, "certificate required": codes.ClientCertificateRefused,
		"handshake failure": codes.HandshakeFails, "protocol version not supported": codes.HandshakeFails, "insufficient security level": codes.HandshakeFails,
		"internal error": codes.HandshakeFails, "unrecognized name": codes.HandshakeFails, "alert(99)": codes.HandshakeFails,
		"no application protocol": codes.ServerWithoutHTTP2,
	} {
		for _, opening := range []string{OpeningTLS + " c2: ", ""} {
			err := errors.New(opening + "remote error: tls: " + alert)
			if got := Code(err); got != want || strings.Contains(Text(err), "client certificate;") != (want == codes.ClientCertificateRefused) {
				t.Errorf("%v: %s, %s", err, got, Text(err))
			}
		}
	}
}

// TestAWebServerIsNoEtcd tests different answers of a web server to the first bytes of HTTP/2.
func TestAWebServerIsNoEtcd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`connection error: desc = "error reading server preface: http2: frame too large"`,
		`connection error: desc = "error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"`,
	} {
		if got := Code(errors.New(text)); got != codes.ServerWithoutHTTP2 {
			t.Errorf("%s: %s", text, got)
		}
	}
}
