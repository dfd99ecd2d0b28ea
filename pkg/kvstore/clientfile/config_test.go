package clientfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestGoldenHostAliases(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Input  string
		OK     bool
		Output json.RawMessage
		Error  string
	}
	data, err := os.ReadFile("testdata/host_aliases.json")
	waittest.Must(t, errors.Join(err, json.Unmarshal(data, &cases)))
	for i, c := range cases {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			got, err := parseHostAliases([]byte(c.Input))
			if !c.OK {
				if err == nil || err.Error() != c.Error {
					t.Errorf("error %v, want %s", err, c.Error)
				}
				return
			}
			text, err2 := json.Marshal(map[string]any{HostAliasesKey: got})
			var have, want any
			waittest.Must(t, errors.Join(err, err2, json.Unmarshal(text, &have), json.Unmarshal(c.Output, &want)))
			if diff := cmp.Diff(want, have); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	cert, key := certs.Client(t, "remote")
	otherCert, _ := certs.Client(t, "other")
	empty := writeFile(t, "empty.crt", "")
	absent := filepath.Join(t.TempDir(), "absent.crt")
	const ep = "endpoints: [\"https://c2.mesh.cilium.io:2379\"]\n"
	for _, c := range []struct {
		name, text string
		want       []string // parts of the error; none: the file is valid
	}{
		{"nothing but endpoints", ep, nil},
		{"several endpoints of every form", "endpoints: [\"https://a:1\", \"http://[::1]:2\", \"10.0.0.1:2379\", \"unix:///run/etcd.sock\"]\n", nil},
		{"certificates", ep + "trusted-ca-file: " + certs.CAFile + "\ncert-file: " + cert + "\nkey-file: " + key + "\n", nil},
		{"all of etcd's tunables", ep + "dial-timeout: 5000000000\nauto-sync-interval: 0\nreject-old-cluster: false\npermit-without-stream: true\n" +
			"max-unary-retries: 3\nbackoff-jitter-fraction: 0.2\nca-file: /ignored\nusername: u\npassword: p\n", nil},
		{"names in another case, as etcd accepts them", "Endpoints: [\"https://a:1\"]\n", nil},
		{"host aliases", ep + "cilium-host-aliases: [{hostname: c2.mesh.cilium.io, ips: [10.0.0.1]}]\n", nil},
		{"no file is looked at without TLS", ep + "insecure-transport: true\ncert-file: " + absent + "\n", nil},

		{"empty", "", []string{"endpoints", "at least one"}},
		{"not YAML", "endpoints: [unterminated\n", []string{"failed to parse config file"}},
		{"a list", "- a\n", []string{"failed to parse"}},
		{"unknown option", ep + "trusted-ca: /x\n", []string{"trusted-ca: unknown option"}},
		{"an option given twice", ep + ep, []string{"endpoints", "already"}},
		{"a duration in words", ep + "dial-timeout: 5s\n", []string{"dial-timeout", `"5s"`, "nanoseconds"}},
		{"a negative duration", ep + "dial-timeout: -1\n", []string{"dial-timeout", "-1"}},
		{"a number for a flag", ep + "insecure-transport: 1\n", []string{"insecure-transport", "1", "true or false"}},
		{"a text for a list", "endpoints: https://a:1\n", []string{"endpoints", "https://a:1", "list"}},
		{"a number for a password, which is not shown", ep + "username: u\npassword: 12345\n", []string{"password: its value is not a string"}},
		{"an endpoint without a port", "endpoints: [\"https://a\"]\n", []string{"endpoints", "https://a", "port"}},
		{"an endpoint without a host", "endpoints: [\"https://:2379\"]\n", []string{"host is missing"}},
		{"an endpoint with a bad port", "endpoints: [\"https://a:port\"]\n", []string{"port"}},
		{"an endpoint with a port out of range", "endpoints: [\"a:70000\"]\n", []string{"70000"}},
		{"an endpoint with a path", "endpoints: [\"https://a:1/v3\"]\n", []string{"/v3"}},
		{"an endpoint of another scheme", "endpoints: [\"ftp://a:1\"]\n", []string{"ftp"}},
		{"a user without a password", ep + "username: u\n", []string{"username and password"}},
		{"a missing authority", ep + "trusted-ca-file: " + absent + "\n", []string{"trusted-ca-file", absent, "no such file"}},
		{"an empty authority", ep + "trusted-ca-file: " + empty + "\n", []string{"trusted-ca-file", empty, "no certificate"}},
		{"a missing certificate", ep + "cert-file: " + absent + "\nkey-file: " + key + "\n", []string{"cert-file", absent, "no such file"}},
		{"a certificate without a key", ep + "cert-file: " + cert + "\n", []string{"cert-file", cert, "key-file is needed"}},
		{"a key without a certificate", ep + "key-file: " + key + "\n", []string{"key-file", key, "cert-file is needed"}},
		{"a key of another certificate", ep + "cert-file: " + otherCert + "\nkey-file: " + key + "\n", []string{otherCert, key, "match"}},
		{"a bad alias", ep + "cilium-host-aliases: [{hostname: a, ips: [nope]}]\n", []string{"nope"}},
		{"everything at once", "endpoints: []\nfoo: 1\nbar: 2\n", []string{"foo", "bar", "endpoints"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, "cluster2", c.text)
			cfg, err := Load(path)
			if len(c.want) == 0 {
				waittest.Must(t, err)
				if cfg.Path != path || len(cfg.Endpoints) == 0 {
					t.Errorf("%+v", cfg)
				}
				return
			}
			if ce, ok := errors.AsType[*Error](err); !ok || ce.Path != path {
				t.Errorf("%#v is not an Error of %s", err, path)
			}
			kvtest.Contains(t, err, append(c.want, path)...)
			if err != nil && strings.Contains(err.Error(), "12345") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
	_, err := Load(absent)
	kvtest.WantErr(t, err, os.ErrNotExist, absent, "no such file")
}

func TestCertificateGone(t *testing.T) {
	t.Parallel()
	c := &Config{fields: fields{named: named{CertFile: "/absent.crt", KeyFile: "/absent.key"}}}
	tc, err := c.ClientTLS()
	waittest.Must(t, err)
	_, err = tc.GetClientCertificate(nil)
	kvtest.Contains(t, err, "cert-file", "/absent.crt", "/absent.key", "no such file")
	c = &Config{fields: fields{named: named{TrustedCAFile: "/absent.crt"}}}
	_, err = c.ClientTLS()
	kvtest.Contains(t, err, "trusted-ca-file", "/absent.crt")
}

func TestConfigShowsNoPassword(t *testing.T) {
	t.Parallel()
	cfg := configOf(t, writeFile(t, "cluster2", "endpoints: [\"http://a:1\"]\nusername: u\npassword: geheim\n"))
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "config", cfg)
	if s := fmt.Sprint(cfg) + b.String(); strings.Contains(s, "geheim") || !strings.Contains(s, "http://a:1") {
		t.Error(s)
	}
}

func TestContentHash(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	cert, key := certs.Client(t, "remote")
	text := "endpoints: [\"https://a:1\"]\ntrusted-ca-file: " + certs.CAFile + "\ncert-file: " + cert + "\nkey-file: " + key + "\n"
	path := writeFile(t, "cluster2", text)
	hash := func() [32]byte {
		t.Helper()
		h, err := ContentHash(path)
		waittest.Must(t, err)
		return h
	}
	first := hash()
	if cfg := configOf(t, path); cfg.Hash != first || HashContent([]byte(text)) != first {
		t.Error("Load or HashContent makes another hash")
	}
	_, named := Digest([]byte(text))
	if diff := cmp.Diff([]string{certs.CAFile, cert, key}, named); diff != "" {
		t.Error(diff)
	}
	same, err := ContentHash(writeFile(t, "cluster3", text))
	if err != nil || same != first {
		t.Errorf("another name makes another hash: %v", err)
	}
	seen := map[[32]byte]string{first: "the first"}
	changes := func(what string, f func() error) {
		t.Helper()
		waittest.Must(t, f())
		if h := hash(); seen[h] != "" {
			t.Errorf("%s: the hash is that of %s", what, seen[h])
		} else {
			seen[h] = what
		}
	}
	changes("a new authority", func() error { return os.WriteFile(certs.CAFile, []byte("new"), 0o600) })
	changes("an authority gone", func() error { return os.Remove(certs.CAFile) })
	changes("an authority that says so", func() error { return os.WriteFile(certs.CAFile, []byte("unreadable"), 0o600) })
	before := hash()
	if certs.Client(t, "remote"); hash() != before {
		t.Error("a rotated certificate makes another hash, though a session reads it by itself")
	}
	changes("a key gone", func() error { return os.Remove(key) })
	changes("a comment", func() error { return os.WriteFile(path, []byte(text+"# x\n"), 0o600) })
	changes("not YAML", func() error { return os.WriteFile(path, []byte("endpoints: [\n"), 0o600) })
	_, err = ContentHash(path + ".absent")
	kvtest.WantErr(t, err, os.ErrNotExist)
}
