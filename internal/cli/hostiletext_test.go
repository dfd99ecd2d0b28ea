package cli_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
)

// hostileName is a name that affects terminals, the direction of text, or readers of YAML.
const hostileName = "n\x1b[2J\x00\x7f\u0085\u009b2J\u061c\u200e\u200f\u2028\u2029\u202e\u2066\u2069\ufffe"

// wantHarmless wants none of these characters unquoted.
func wantHarmless(t *testing.T, what, text string) {
	t.Helper()
	if strings.ContainsAny(text, "\x1b\x00\x7f\u0085\u009b\u061c\u200e\u200f\u2028\u2029\u202e\u2066\u2069\ufffe") {
		t.Errorf("%s: %.300q", what, text)
	}
}

// TestNamesThatDoSomething: a remote cluster has a hostile name, which must not break the output about other clusters.
func TestNamesThatDoSomething(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	a.Nodes.Apply([]store.Change[nodes.Node]{{Name: "hostile", New: &nodes.Node{
		Cluster: "c2", ClusterID: 2, Name: hostileName, Source: wire.SourceClusterMesh, Labels: map[string]string{hostileName: hostileName},
	}}})
	type list struct {
		Items []struct {
			Name   string
			Labels map[string]string
		}
	}
	for _, format := range []string{"json", "yaml", "table", "wide", "name"} {
		got := a.Ask("get", "nodes", "-o", format)
		if got.Code != exit.OK {
			t.Errorf("%s: %d %s", format, got.Code, got.Err)
		}
		wantHarmless(t, format, got.Out)
		var l list
		if (format == "yaml" || format == "json") && (yaml.Unmarshal([]byte(got.Out), &l) != nil || len(l.Items) != 2 ||
			l.Items[0].Name != hostileName || l.Items[0].Labels[hostileName] != hostileName || l.Items[1].Name != "n1") {
			t.Errorf("%s: %+v of %q", format, l, got.Out)
		}
	}
	for _, path := range []string{"/v1/nodes", "/v1/status", "/v1/watch?resource=nodes"} {
		resp, err := http.Get(a.Server + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text := bufio.NewReader(resp.Body)
		for {
			line, err := text.ReadString('\n')
			wantHarmless(t, path, line)
			var e struct{ Object *api.Node }
			if data, is := strings.CutPrefix(line, "data: "); is && json.Unmarshal([]byte(data), &e) != nil {
				t.Errorf("%s: %q", path, data)
			}
			if err == io.EOF || strings.HasPrefix(line, "event: "+api.WatchSynced) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := a.Ask("get", "node", "c2/\u202e\u009b"); got.Code != exit.Unwell {
		t.Errorf("%d %q", got.Code, got.Err)
	} else {
		wantHarmless(t, "an error", got.Err)
	}
}
