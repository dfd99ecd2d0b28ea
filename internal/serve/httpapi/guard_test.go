package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// raw sends one request with these header lines over a connection of its own.
func raw(t *testing.T, network, address, path string, header ...string) (int, http.Header, string) {
	t.Helper()
	c, err := net.Dial(network, address)
	must(t, err)
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nConnection: close\r\n%s\r\n\r\n", path, strings.Join(header, "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s %q: %v", path, header, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, resp.Header, string(body)
}

// TestWhatBrowsersSendForOthers: requests are refused if their Host is another name that resolves to this address, or
// if a page of another origin sends them. Browsers cannot reach the unix socket.
func TestWhatBrowsersSendForOthers(t *testing.T) {
	t.Parallel()
	f, _, _ := served(t)
	tests := map[string]struct {
		header []string
		status int
	}{
		"localhost":                {[]string{"Host: localhost"}, 200},
		"localhost with its port":  {[]string{"Host: LocalHost:9979"}, 200},
		"localhost as a root name": {[]string{"Host: localhost.:9979"}, 200},
		"an address":               {[]string{"Host: 127.0.0.1:1"}, 200},
		"another address":          {[]string{"Host: 10.1.2.3"}, 200},
		"an IPv6 address":          {[]string{"Host: [::1]:9979"}, 200},
		"an IPv6 address alone":    {[]string{"Host: [::1]"}, 200},
		"a name":                   {[]string{"Host: evil.example:9979"}, 421},
		"a name like ours":         {[]string{"Host: localhost.evil.example"}, 421},
		"below localhost":          {[]string{"Host: x.localhost"}, 421},
		"a name with an address":   {[]string{"Host: 127.0.0.1.nip.io"}, 421},
		"no address":               {[]string{"Host: 127.1"}, 421},
		"the own origin":           {[]string{"Host: localhost:9979", "Origin: http://localhost:9979"}, 200},
		"a foreign origin":         {[]string{"Host: localhost:9979", "Origin: https://evil.example"}, 403},
		"another port":             {[]string{"Host: localhost:9979", "Origin: http://localhost:3000"}, 403},
		"a hidden origin":          {[]string{"Host: localhost", "Origin: null"}, 403},
		"two origins":              {[]string{"Host: localhost", "Origin: http://localhost", "Origin: http://evil.example"}, 403},
		"a rebound name of both":   {[]string{"Host: evil.example", "Origin: http://evil.example"}, 421},
	}
	for name, test := range tests {
		for _, path := range []string{"/v1/status", "/metrics", "/healthz", "/readyz", "/v1/watch?resource=nope", "/", "/nothing"} {
			want := test.status
			if want == 200 {
				want = map[string]int{"/v1/watch?resource=nope": 400, "/nothing": 404}[path]
			}
			if want == 0 {
				want = 200
			}
			status, header, body := raw(t, "tcp", f.Address(), path, test.header...)
			if status != want {
				t.Errorf("%s: %s: %d, want %d: %s", name, path, status, want, body)
			}
			var p api.Problem
			if test.status != 200 && (header.Get("Content-Type") != api.MediaTypeProblem || json.Unmarshal([]byte(body), &p) != nil || p.Detail == "") {
				t.Errorf("%s: %s: no problem document: %v %s", name, path, header, body)
			}
		}
		if status, _, body := raw(t, "unix", f.Socket(), "/v1/status", test.header...); status != 200 {
			t.Errorf("%s: over the unix socket: %d %s", name, status, body)
		}
	}
}

func TestDebug(t *testing.T) {
	t.Parallel()
	f, tcp, unix := served(t)
	for _, path := range []string{"/v1/debug/goroutines", "/v1/debug/config"} {
		resp, body := ask(t, tcp, http.MethodGet, path, "")
		wantLocal(t, f, resp, body)
	}
	resp, body := ask(t, unix, http.MethodGet, "/v1/debug/goroutines", "")
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "goroutine ") || !strings.Contains(body, "TestDebug") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	_, body = ask(t, unix, http.MethodGet, "/v1/debug/config", "")
	var got api.Settings
	if err := json.Unmarshal([]byte(body), &got); err != nil || !cmp.Equal(got, f.Settings) {
		t.Errorf("%v %v", got, err)
	}
}

// TestAPasswordCannotBeTried: a client that reads a configHash over TCP, and has all of a client file but its password,
// cannot find the password. A client of the unix socket can compare contents.
func TestAPasswordCannotBeTried(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c2")
	must(t, os.WriteFile(file, []byte("endpoints: ['https://c2:2379']\nusername: remote\npassword: geheim\n"), 0o600))
	hash, err := clientfile.Fingerprint(file)
	must(t, err)
	plain := fmt.Sprintf("%x", hash)
	shown := make(map[string]bool)
	for range 2 {
		f, tcp, unix := served(t)
		f.configKey = clientfile.NewKey() // as a server has it, except in golden files
		c := readyCluster("c2", 2)
		c.ConfigHash = plain
		f.mesh.SetClusters(c, connectingCluster("c3"))
		var st api.Status
		_, body := ask(t, tcp, http.MethodGet, "/v1/status", "")
		if err := json.Unmarshal([]byte(body), &st); err != nil || len(st.Clusters) != 2 {
			t.Fatalf("%v %s", err, body)
		}
		for _, path := range []string{"/v1/status", "/v1/clusters", "/v1/clusters/c2", "/openapi.json", "/"} {
			if _, body := ask(t, tcp, http.MethodGet, path, ""); strings.Contains(body, plain) || strings.Contains(body, f.configKey) {
				t.Errorf("%s: %s", path, body)
			}
		}
		resp, body := ask(t, tcp, http.MethodGet, "/v1/config-key", "")
		wantLocal(t, f, resp, body)
		var key api.ConfigKey
		if _, body := ask(t, unix, http.MethodGet, "/v1/config-key", ""); json.Unmarshal([]byte(body), &key) != nil || clientfile.KeyedHash(key.Key, plain) != st.Clusters[0].ConfigHash {
			t.Errorf("the key does not lead to %s: %s", st.Clusters[0].ConfigHash, body)
		}
		if st.Clusters[1].ConfigHash != "" {
			t.Errorf("a hash of a file that cannot be read: %s", st.Clusters[1].ConfigHash)
		}
		shown[st.Clusters[0].ConfigHash] = true
	}
	if len(shown) != 2 {
		t.Error("two agents have one key")
	}
}

// TestMoreNames: the names that an operator configures are accepted, and no others that are similar.
func TestMoreNames(t *testing.T) {
	t.Parallel()
	var none *transport.TLS
	for host, want := range map[string]bool{
		"node-1.example.org": true, "Node-1.Example.ORG:9979": true, "node-1.example.org.": true, "x.node-1.example.org": false,
		"mesh-agent.kube-system.svc:9979": true, "mesh-agent.kube-system.SVC": true, "svc": false, ".svc": false, "svc.evil.example": false, "evilsvc": false,
		"mesh-agent.kube-system": false, "localhost": true, "10.1.2.3:9979": true, "": true,
	} {
		if got := none.Serves(host, []string{"node-1.example.org", ".svc"}); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
