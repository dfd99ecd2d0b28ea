package clientfile

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	clientyaml "go.etcd.io/etcd/client/v3/yaml"
)

// FuzzLoad: an accepted client file can be used and shown, and etcd's own
// reader accepts it, too.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"endpoints: [\"https://a:1\"]\n",
		"endpoints: [\"http://u:p@a:1\", b:2, \"unix:/s\"]\ninsecure-transport: true\nusername: root\npassword: secret\n",
		"ENDPOINTS: [a:1]\ndial-timeout: 5\nMaxCallSendMsgSize: 1\nbackoff-jitter-fraction: .5\n",
		"endpoints:\n- https://c2.mesh.cilium.io:2379\ncilium-host-aliases:\n- hostname: c2.mesh.cilium.io\n  ips: [192.0.2.1, \"fd00::1\"]\n",
		"endpoints: [a:1]\ntrusted-ca-file: /nowhere\ncert-file: /nowhere\nkey-file: /nowhere\n",
		"endpoints: &a [a:1]\nx: *a\n",
		"endpoints: 1\ncilium-host-aliases: [{hostname: a, ips: [10.0.0.1]}]\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := writeFile(t, "c2", string(content))
		if _, err := parseHostAliases(content); err != nil && !strings.HasPrefix(err.Error(), "failed to parse config file: ") {
			t.Error(err)
		}
		c, err := Load(path)
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Path != path || len(e.Problems) == 0 || slices.ContainsFunc(e.Problems, func(p error) bool { return p.Error() == "" }) {
				t.Fatalf("not all problems of the file have words: %v", err)
			}
			return
		}
		want, err := clientyaml.NewConfig(path)
		if err != nil {
			t.Fatalf("etcd's own reader refuses the file: %v", err)
		}
		var got clientv3.Config
		if want.TLS = nil; c.Decode(&got) != nil || !reflect.DeepEqual(got, *want) || len(got.Endpoints) != len(c.Endpoints) || len(c.Endpoints) == 0 {
			t.Fatalf("%+v, etcd's own reader: %+v", got, *want)
		}
		for _, e := range c.Endpoints {
			if err := CheckEndpoint(e); err != nil {
				t.Fatalf("%q is accepted: %v", e, err)
			}
		}
		if hash, err := ContentHash(path); err != nil || hash != c.Hash {
			t.Fatalf("another hash: %v", err)
		}
		shown, ok := Show(content)
		if !ok {
			t.Fatal("what is accepted cannot be shown")
		}
		if _, ok := Show(shown.Text); !ok {
			t.Fatalf("what is shown is no client file: %q", shown.Text)
		}
	})
}

// FuzzRedact: Redact removes everything at once, and adds nothing.
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
