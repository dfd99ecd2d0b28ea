package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// TestAPasswordCannotBeTried: who sees a configHash over TCP, and knows everything
// of a client file but its password, cannot find that out. Who may use the socket
// can compare contents.
func TestAPasswordCannotBeTried(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c2")
	if err := os.WriteFile(file, []byte("endpoints: ['https://c2:2379']\nusername: remote\npassword: geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hash, err := clientfile.Fingerprint(file)
	if err != nil {
		t.Fatal(err)
	}
	plain := fmt.Sprintf("%x", hash)
	shown := make(map[string]bool)
	for range 2 {
		f, tcp, unix := served(t)
		f.configKey = NewConfigKey() // as the server has it, were it not for golden files
		c := readyCluster("c2", 2)
		c.ConfigHash = plain
		f.mesh.SetClusters(c, connectingCluster("c3"))
		var st Status
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
		var key ConfigKey
		if _, body := ask(t, unix, http.MethodGet, "/v1/config-key", ""); json.Unmarshal([]byte(body), &key) != nil || KeyedHash(key.Key, plain) != st.Clusters[0].ConfigHash {
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
