package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
	var got Settings
	if err := json.Unmarshal([]byte(body), &got); err != nil || !cmp.Equal(got, f.Settings) {
		t.Errorf("%v %v", got, err)
	}
}
