package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
)

// watched is a running `get -w`.
type watched struct {
	t     *testing.T
	lines *bufio.Scanner
	stop  func() int // interrupts it and returns its exit code
}

func watch(a *clitest.Agent, t *testing.T, args ...string) *watched {
	t.Helper()
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	root := cli.Root(clitest.With(nil, "/nonexistent", "127.0.0.1:1").Cli, &cobra.Command{Use: "run"})
	root.SetOut(in)
	root.SetErr(io.Discard)
	root.SetContext(ctx)
	code := make(chan int, 1)
	go func() {
		code <- command.Execute(root, append(args, "--server", a.Server))
		in.Close()
	}()
	w := &watched{t: t, lines: bufio.NewScanner(out)}
	w.stop = func() int {
		cancel()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		return <-code
	}
	t.Cleanup(func() { cancel(); out.Close() })
	return w
}

// next returns the next line, its fields separated by one space.
func (w *watched) next() string {
	w.t.Helper()
	if !w.lines.Scan() {
		w.t.Fatalf("no further line: %v", w.lines.Err())
	}
	return strings.Join(strings.Fields(w.lines.Text()), " ")
}

func TestGetWatches(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	table, names := watch(a, t, "get", "clusters", "-w"), watch(a, t, "get", "clusters", "-w", "-o", "name")
	structured := watch(a, t, "get", "cluster", "c2", "-w", "-o", "json")
	if head, row := table.next(), table.next(); !strings.HasPrefix(head, "TIME EVENT CLUSTER STATE") || !strings.HasPrefix(row, "- state c2 ready 2") {
		t.Errorf("%s\n%s", head, row)
	}
	if name := names.next(); name != "c2" {
		t.Errorf("name %q", name)
	}
	if state, end := structured.next(), structured.next(); !strings.Contains(state, `"event":"upsert"`) || !strings.Contains(end, `"event":"synced"`) {
		t.Errorf("%s\n%s", state, end)
	}
	other := clitest.Well("c2", 2)
	other.Message = "as if"
	a.Mesh.SetClusters(other)
	if row := table.next(); !strings.Contains(row, "upsert c2 ready") || !strings.HasSuffix(row, "message") {
		t.Errorf("a change: %s", row)
	}
	_, _ = names.next(), structured.next()
	a.Mesh.SetClusters(clitest.Lost("c3"))
	rows := table.next() + "\n" + table.next()
	if !regexp.MustCompile(`upsert c3 degraded .* new(\n|$)`).MatchString(rows) || !strings.Contains(rows, "delete c2") {
		t.Errorf("rows %s", rows)
	}
	if both := names.next() + "," + names.next(); both != "c3,c2 deleted" && both != "c2 deleted,c3" {
		t.Errorf("names %s", both)
	}
	var e struct {
		Event, Resource string
		Object          api.Cluster
		Revision        uint64
	}
	if err := json.Unmarshal([]byte(structured.next()), &e); err != nil || e.Event != "delete" || e.Resource != "clusters" || e.Object.Name != "c2" || e.Revision == 0 {
		t.Errorf("%+v %v", e, err)
	}
	for _, w := range []*watched{table, names, structured} {
		if code := w.stop(); code != exit.OK {
			t.Errorf("interrupted: exit %d", code)
		}
	}
}

// TestGetWatchesOneAddress: a NAME matches exactly that prefix, and not the prefixes in it.
func TestGetWatchesOneAddress(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	for _, name := range []string{"10.2.1.0/24", "0.0.0.0/0"} {
		if r := a.Ask("get", "ips", name, "-w"); r.Code != exit.Unwell || !strings.Contains(r.Err, "no cluster claims "+name) {
			t.Errorf("%s: exit %d %s", name, r.Code, r.Err)
		}
	}
	for _, name := range []string{"10.2.1.10", "10.2.1.10/32", "::ffff:10.2.1.10", "::ffff:10.2.1.10/128"} {
		w := watch(a, t, "get", "ips", name, "-w", "-o", "json")
		if line := w.next(); !strings.Contains(line, `"prefix":"10.2.1.10/32"`) {
			t.Errorf("%s is not shown: %s", name, line)
		}
		if line := w.next(); !strings.Contains(line, `"event":"synced"`) {
			t.Errorf("%s shows %s", name, line)
		}
		if code := w.stop(); code != exit.OK {
			t.Errorf("%s: exit %d", name, code)
		}
	}
}

func TestGetSelects(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	for args, want := range map[string]string{
		"get identities -l app=web,tier":               "131072\n",
		"get identities -l k8s:app=db":                 "",
		"get ips -l app=web":                           "10.2.1.10/32\n",
		"get ips --identity 131072":                    "10.2.1.10/32\n",
		"get ips --prefix 10.2.0.0/16":                 "10.2.1.10/32\n",
		"get ips --prefix 10.3.0.0/16":                 "",
		"get conflicts --kind ip":                      "ip/10.2.1.10/32\n",
		"get conflicts --kind cluster-id":              "",
		"get events --kind conflict -c c3 -o name":     "1\n",
		"get conflicts -c c2 --kind ip -l app -o json": "",
	} {
		if !strings.Contains(args, "-o") {
			args += " -o name"
		}
		r := a.Ask(strings.Fields(args)...)
		if refused := strings.Contains(args, "-l app -o json"); refused != (r.Code == exit.Usage) || r.Out != want {
			t.Errorf("%s: exit %d, %q %s, want %q", args, r.Code, r.Out, r.Err, want)
		}
	}
	if r := a.Ask("get", "node", "c9/none", "-w"); r.Code != exit.Unwell || !strings.Contains(r.Err, "none") {
		t.Errorf("what does not exist: exit %d %s", r.Code, r.Err)
	}
	if r := a.Ask("get", "event", "1", "-w"); r.Code != exit.Usage || !strings.Contains(r.Err, "watch all of them") {
		t.Errorf("one event: exit %d %s", r.Code, r.Err)
	}
}

// TestEventsThatGrewOldAreNoNews: when the ring of events drops its oldest ones, a person who watches is not shown
// these deletions, but a program is.
func TestEventsThatGrewOldAreNoNews(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]int{printer.Name: 0, "table": 0, printer.JSON: 1} {
		for _, k := range resource.All() {
			events, is := k.(resource.Kind[api.Event])
			if !is {
				continue
			}
			var out strings.Builder
			show := events.Shower(resource.Request{Out: &out, Format: printer.NewFormat(format)})
			for _, kind := range []string{api.WatchSynced, api.WatchDelete} {
				e := client.Event[api.Event]{Kind: kind}
				if kind == api.WatchDelete {
					e.Object = &api.Event{ID: 7}
				}
				if err := show(e); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Count(out.String(), "delete"); got != want {
				t.Errorf("%s: %d deletions are shown, want %d: %s", format, got, want, out.String())
			}
		}
	}
}
