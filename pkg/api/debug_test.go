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
	f := newFixture(t)
	w := f.get("/v1/debug/goroutines")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "goroutine ") || !strings.Contains(w.Body.String(), "TestDebug") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	var got Settings
	if err := json.Unmarshal(f.get("/v1/debug/config").Body.Bytes(), &got); err != nil || !cmp.Equal(got, f.Settings) {
		t.Errorf("%v %v", got, err)
	}
}
