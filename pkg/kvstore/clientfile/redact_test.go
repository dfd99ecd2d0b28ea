package clientfile

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		"nothing@all":                   "nothing@all",
		"https://a:1":                   "https://a:1",
		"https://u:p@a:1":               "https://a:1",
		"https://u:p@x@a:1/path":        "https://a:1/path",
		"http://a:1,https://u:p,w@b:2":  "http://a:1,https://b:2",
		"dial http://u:p/w@a:1: no a@b": "dial http://a:1: no a@b",
		"https://u:p@a:1\nhttps://v:q@b:2 https://c:3": "https://a:1\nhttps://b:2 https://c:3",
		`["https://a:1","https://u:p@b:2"]`:            `["https://a:1","https://b:2"]`,
		"https://u:p@":                                 "https://",
	} {
		if got := Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	const file = `endpoints: ["https://u:hunter2@a:1", "u:hunter2@b:2"]
Password: hunter2
token: hunter2
passwort: hunter2
username: root
cert-file: /certs/a.crt
key-file: |
  -----BEGIN PRIVATE KEY-----
  hunter2
trusted-ca-file: {hunter2: hunter2}
dial-timeout: 5
insecure-transport: hunter2
cilium-host-aliases: [{hostname: a, ips: [192.0.2.1], other: hunter2}]
`
	shown, ok := Show([]byte(file))
	if !ok {
		t.Fatal("not shown")
	}
	const want = `Password: (left out)
cert-file: /certs/a.crt
cilium-host-aliases:
- hostname: a
  ips:
  - 192.0.2.1
dial-timeout: 5
endpoints:
- https://a:1
- b:2
insecure-transport: (left out)
key-file: (left out)
passwort: (left out)
token: (left out)
trusted-ca-file: (left out)
username: root
`
	if diff := cmp.Diff(want, string(shown.Text)); diff != "" {
		t.Error(diff)
	}
	for _, content := range []string{"endpoints: [hunter2", "hunter2", "- hunter2"} {
		if shown, ok := Show([]byte(content)); ok {
			t.Errorf("%q is shown: %s", content, shown.Text)
		}
	}
}

// TestErrorsShowNoSecrets: the error about a mistake in a client file does not show a
// secret that is in the wrong place.
func TestErrorsShowNoSecrets(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"no list of endpoints":       "endpoints: https://u:hunter2@a:1\n",
		"an endpoint without a port": "endpoints: ['https://u:hunter2@a']\n",
		"an endpoint that is no URL": "endpoints: ['https://u:hunter2%zz@a:1', 'ftp://u:hunter2@a:1']\n",
		"no scheme":                  "endpoints: ['u:hunter2@a']\n",
		"a key instead of its path":  "endpoints: ['https://a:1']\ncert-file: /a\nkey-file: |\n  -----BEGIN PRIVATE KEY-----\n  hunter2\n",
		"a password of two lines":    "endpoints: ['https://a:1']\nusername: a\npassword: [hunter2]\n",
		"an option that is a URL":    "endpoints: ['https://a:1']\nhttps://u:hunter2@b: 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Load(writeFile(t, "c2", content)); err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAKeyAsBase64IsNoPath tests all forms of base64.
func TestAKeyAsBase64IsNoPath(t *testing.T) {
	t.Parallel()
	key := []byte("-----BEGIN PRIVATE KEY-----\nhunter2 hunter2 hunter2 hunter2 hunter2\n-----END PRIVATE KEY-----\n")
	std := base64.StdEncoding.EncodeToString(key)
	for form, text := range map[string]string{
		"padded":        std,
		"raw":           base64.RawStdEncoding.EncodeToString(key),
		"for URLs":      base64.URLEncoding.EncodeToString(key),
		"a line before": base64.StdEncoding.EncodeToString(append([]byte("\n"), key...)),
		"cut off":       std[:41],
		"two lines":     std[:40] + "\n  " + std[40:],
		"a block":       "|\n  " + std[:40] + "\n  " + std[40:],
	} {
		for _, option := range []string{"key-file", "cert-file", "trusted-ca-file"} {
			content := "endpoints: ['https://a:1']\n" + option + ": " + text + "\n"
			_, err := Load(writeFile(t, "c2", content))
			if err == nil || strings.Contains(err.Error(), std[20:30]) || !strings.Contains(err.Error(), option+": its value is no path") {
				t.Errorf("%s, %s: %v", option, form, err)
			}
			shown, ok := Show([]byte(content))
			if !ok || strings.Contains(string(shown.Text), std[20:30]) || shown.KeyFile+shown.CertFile+shown.TrustedCAFile != "" {
				t.Errorf("%s, %s: shown as %+v\n%s", option, form, shown, shown.Text)
			}
		}
	}
	for _, path := range []string{"/var/lib/cilium/clustermesh/c2.key", "certs/LS0t", "etcd-client.crt", "/a path/with spaces"} {
		if pathOnly(path) != path {
			t.Errorf("%q does not pass", path)
		}
	}
}

func TestEndpointsLoseTheirUsers(t *testing.T) {
	t.Parallel()
	c := configOf(t, writeFile(t, "c2", "endpoints: ['http://u:hunter2@a:1']\n"))
	other, err := c.WithEndpoints("http://u:hunter2@b:1")
	if err != nil || c.Endpoints[0] != "http://a:1" || other.Endpoints[0] != "http://b:1" {
		t.Errorf("%v %v %v", c, other, err)
	}
}
