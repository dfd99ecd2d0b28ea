package kubernetes

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestWhatASourceCannotBeginWith(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"own pods of nobody": {Options{OwnPodsOnly: true, Kubeconfig: "any"}, "set the node's name"},
		"no kubeconfig":      {Options{Kubeconfig: filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(c.options, tables(t), slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestOutsideOfAPodAKubeconfigIsNeeded(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // these tests may run in one
	_, err := New(Options{}, tables(t), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "name a kubeconfig file") {
		t.Errorf("%v", err)
	}
}

// The age of the description follows from the last event or bookmark, not from errors: a silent server may have new
// data. Services and slices count, the older of the two.
func TestHowOldTheDescriptionIs(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}"
	waittest.Must(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	into := tables(t)
	s, err := New(Options{Kubeconfig: kubeconfig, Report: into.Report}, into, slog.New(slog.DiscardHandler))
	waittest.Must(t, err)
	s.health.reached(nil)
	into.Services.Listed()
	into.EndpointSlices.Listed()
	first := time.Now().Add(-time.Hour)
	for i, k := range s.health.kinds {
		asOf := into.State().AsOf
		heard := first.Add(time.Duration(i) * time.Minute)
		s.health.heard(k, heard)
		switch k.resource {
		case "services":
			if !asOf.IsZero() || !into.State().AsOf.IsZero() {
				t.Errorf("without slices it is known as of %v", into.State().AsOf)
			}
		case "endpointslices":
			if got := into.State().AsOf; !got.Equal(first) {
				t.Errorf("with both it is known as of %v, want %v", got, first)
			}
			s.health.heard(s.health.kinds[0], heard.Add(time.Hour))
			if got := into.State().AsOf; !got.Equal(heard) {
				t.Errorf("it is known as of %v, want %v", got, heard)
			}
		default:
			if got := into.State().AsOf; !got.Equal(asOf) {
				t.Errorf("%s moved it to %v", k.resource, got)
			}
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWhetherTheServerAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		err    error
		want   string
	}{
		"an answer":         {http.StatusOK, nil, "<nil>"},
		"a refusal":         {http.StatusForbidden, nil, "<nil>"},
		"too many requests": {http.StatusTooManyRequests, nil, "<nil>"},
		"it cannot":         {http.StatusServiceUnavailable, nil, "503"},
		"the end":           {0, io.EOF, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := "nothing"
			tr := transport{
				next: roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: c.status, Status: http.StatusText(c.status)}, c.err
				}),
				reached: func(err error) {
					got = "<nil>"
					if err != nil {
						got = err.Error()
					}
				},
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server", nil)
			waittest.Must(t, err)
			_, err = tr.RoundTrip(r) //nolint:bodyclose // there is none
			if errors.Is(err, io.EOF) || (err != nil) != (c.err != nil) {
				t.Errorf("fails with %v", err)
			}
			want := c.want
			if want == "503" {
				want = http.StatusText(c.status)
			}
			if got != want {
				t.Errorf("reached: %s, want %s", got, want)
			}
		})
	}
}

func TestTheLibrariesSpeakForDebuggingAlone(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{slog.LevelDebug: "level=DEBUG msg=trouble a=1 b=2\n", slog.LevelInfo: ""} {
		var out bytes.Buffer
		log := clientLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "err" {
				return slog.Attr{}
			}
			return a
		}})))
		log.WithValues("a", 1).Error(errors.New("e"), "trouble", "b", 2)
		log.V(3).Info("details")
		if out.String() != want {
			t.Errorf("at level %v: %q, want %q", level, out.String(), want)
		}
	}
}
