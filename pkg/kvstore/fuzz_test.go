package kvstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoadConfig: a client file that is accepted can be used, and shown, and is
// what etcd's own reader takes, too.
func FuzzLoadConfig(f *testing.F) {
	for _, text := range []string{
		"endpoints: [\"https://a:1\"]\n",
		"endpoints: [\"http://u:p@a:1\", b:2, \"unix:/s\"]\ninsecure-transport: true\nusername: root\npassword: secret\n",
		"ENDPOINTS: [a:1]\ndial-timeout: 5\nMaxCallSendMsgSize: 1\nbackoff-jitter-fraction: .5\n",
		"endpoints:\n- https://c2.mesh.cilium.io:2379\ncilium-host-aliases:\n- hostname: c2.mesh.cilium.io\n  ips: [192.0.2.1, \"fd00::1\"]\n",
		"endpoints: [a:1]\ntrusted-ca-file: /nowhere\ncert-file: /nowhere\nkey-file: /nowhere\n",
		"endpoints: &a [a:1]\nx: *a\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "c2")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := LoadConfig(path)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "client file "+path+": ") {
				t.Fatalf("the file is not named: %v", err)
			}
			return
		}
		if len(c.Endpoints) == 0 || len(c.Endpoints) != len(c.etcd.Endpoints) {
			t.Fatalf("%d endpoints, %d for etcd", len(c.Endpoints), len(c.etcd.Endpoints))
		}
		for _, e := range c.Endpoints {
			if err := checkEndpoint(e); err != nil {
				t.Fatalf("%q is accepted: %v", e, err)
			}
		}
		if hash, err := ContentHash(path); err != nil || hash != c.Hash {
			t.Fatalf("another hash: %v", err)
		}
		shown, ok := ShowFile(content)
		if !ok {
			t.Fatal("what is accepted cannot be shown")
		}
		if _, ok := ShowFile(shown.Text); !ok {
			t.Fatalf("what is shown is no client file: %q", shown.Text)
		}
	})
}

// FuzzParseOptions: what is accepted is within its limits, and what is not is
// named.
func FuzzParseOptions(f *testing.F) {
	for option, value := range map[string]string{
		"etcd.address": "http://127.0.0.1:1, b:2", "etcd.config": "/x", "etcd.qps": "100", "etcd.bootstrapQps": "0",
		"etcd.maxInflight": "-1", "etcd.limit": "2147483648", "etcd.keepaliveHeartbeat": "15s", "etcd.keepaliveTimeout": "0", "etcd.nope": "1",
	} {
		f.Add(option, value)
	}
	f.Fuzz(func(t *testing.T, option, value string) {
		o, err := ParseOptions(map[string]string{option: value})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "kvstore option ") {
				t.Fatalf("the option is not named: %v", err)
			}
			return
		}
		if o.QPS < 0 || o.BootstrapQPS < 0 || o.MaxInflight < 0 || o.PageLimit < 0 || o.KeepaliveHeartbeat <= 0 || o.KeepaliveTimeout <= 0 {
			t.Fatalf("%+v", o)
		}
		for _, a := range o.Addresses {
			if err := checkEndpoint(a); err != nil {
				t.Fatalf("%q is accepted: %v", a, err)
			}
		}
	})
}

// FuzzRedact: nothing is left to cut out, and nothing is added.
func FuzzRedact(f *testing.F) {
	for _, text := range []string{"https://u:p@a:1", "http://a:1,https://u:p,w@b:2", "x@y", "://@://@", "https://u:p@a:1\nhttps://v:q@b:2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean := Redact(text)
		if again := Redact(clean); again != clean {
			t.Fatalf("%q becomes %q, and that %q", text, clean, again)
		}
		rest := text
		for _, b := range []byte(clean) {
			at := strings.IndexByte(rest, b)
			if at < 0 {
				t.Fatalf("%q becomes %q", text, clean)
			}
			rest = rest[at+1:]
		}
	})
}
