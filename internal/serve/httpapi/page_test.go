package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/serve/ui"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

func TestPage(t *testing.T) {
	t.Parallel()
	page, err := ui.New()
	must(t, err)
	f := newFixtureOf(t, 0, WithPage(page))
	index := f.get("/ui/")
	if index.Code != http.StatusOK || !strings.HasPrefix(index.Header().Get("Content-Type"), "text/html") || index.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("%d %v", index.Code, index.Header())
	}
	if w := f.get("/ui"); w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != "ui/" {
		t.Errorf("/ui: %d %v", w.Code, w.Header())
	}
	if w := f.get("/ui/assets/nope.js"); w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != api.MediaTypeProblem || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("an unknown file: %d %v", w.Code, w.Header())
	}
	if w := f.get("/"); !strings.Contains(w.Body.String(), "/ui\n") || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("/: %v %s", w.Header(), w.Body)
	}
}

func TestWithoutPage(t *testing.T) {
	t.Parallel()
	if w := newFixture(t).get("/ui/"); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestContains: the text may be anywhere in the name, in upper or lower case.
func TestContains(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	for target, want := range map[string]bool{
		"/v1/services?contains=default%2FW":              true,
		"/v1/services?contains=eb":                       true,
		"/v1/services?contains=eb&namespace=nope":        false,
		"/v1/services?contains=nothing-has-this":         false,
		"/v1/nodes?contains=C2%2Fn":                      true,
		"/v1/nodes?contains=nothing-has-this":            false,
		"/v1/ips?contains=2.1.10":                        true,
		"/v1/ips?contains=2.1.10&cluster=nope":           false,
		"/v1/ips?contains=" + url.QueryEscape("default"): true,
		"/v1/ips?contains=nothing-has-this":              false,
	} {
		if got := list[json.RawMessage](t, f, target); len(got.Items) > 0 != want {
			t.Errorf("%s: %s", target, got.Items)
		}
	}
}

// TestResumeToken: a watch since the token of a list has the later changes only.
func TestResumeToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	w := f.get("/v1/services")
	var all api.List[api.Service]
	must(t, json.Unmarshal(w.Body.Bytes(), &all))
	token := w.Header().Get(api.HeaderToken)
	if token != f.View.Token(all.Revision) || token == "" {
		t.Errorf("%q is not the token of revision %d", token, all.Revision)
	}
	// A watch of addresses by labels always begins with the state, so their list has no token.
	for target, want := range map[string]bool{"/v1/ips": true, "/v1/ips?labels=app": false, "/v1/services?labels=app": true} {
		if got := f.get(target).Header().Get(api.HeaderToken) != ""; got != want {
			t.Errorf("%s has a token: %v, want %v", target, got, want)
		}
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	if got := object[api.Codes](t, newFixture(t), "/v1/codes"); len(got.Items) != len(codes.All()) || !slices.ContainsFunc(got.Items, func(e api.CodeEntry) bool {
		return e.Code == string(codes.PolicyHeld) && e.Remedy != "" && e.Severity == string(codes.Error)
	}) {
		t.Errorf("%+v", got.Items)
	}
}
