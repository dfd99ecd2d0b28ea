package cli_test

import (
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
)

// TestHabitsOfKubectl: -A, --no-headers, --sort-by and -o jsonpath, and the flags that they exclude.
func TestHabitsOfKubectl(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c10", 10), clitest.Well("c2", 2), clitest.Lost("c3"))
	for args, want := range map[string]string{
		"get clusters -A --no-headers -o wide --sort-by .id":                            "c2 ",
		"get clusters -o name --sort-by id":                                             "c2\nc3\nc10\n",
		"get clusters -o name --sort-by={.id}":                                          "c2\nc3\nc10\n",
		"get clusters -o name --sort-by={.state}":                                       "c3\n",
		"get clusters -o name --sort-by=.lastEvent":                                     "c2\n", // null in all
		"get clusters -o jsonpath={.items[?(@.id==10)].name}":                           "c10\n",
		"get clusters --sort-by=.id -o jsonpath={.items[*].name}":                       "c2 c3 c10\n",
		"get cluster c2 -o jsonpath=.name":                                              "c2\n",
		"get clusters -o jsonpath={range.items[*]}{.name}{'\\n'}{end}":                  "c2\nc3\nc10\n",
		"get clusters -o custom-columns=NAME:.name,IS:.state,NO:.nothing --sort-by .id": "NAME  IS        NO\nc2    ready     -\nc3    degraded  -\n",
		"get clusters -o name":                                                          "c2\nc3\nc10\n",
		"get clusters --sort-by=.id -o jsonpath={.items[*].nothing}":                    "\n",
		"get clusters -c c2 --no-headers -o jsonpath={.items[*].state}":                 "ready\n",
	} {
		if got := a.Ask(strings.Split(args, " ")...); got.Code != exit.OK || !strings.HasPrefix(got.Out, want) {
			t.Errorf("%s: exit %d, %q, not %q\n%s", args, got.Code, got.Out, want, got.Err)
		}
	}
	for args, want := range map[string]string{
		"get services -A -n shop":                "give one of them",
		"get clusters -w -o jsonpath={.name}":    "use -o json",
		"get clusters --sort-by nope":            "--sort-by: {.nope}: no item has this field: it has .cached",
		"get clusters --sort-by {nope}":          `--sort-by: "{nope}" is no path such as {.items[*].name}: unrecognized identifier nope`,
		"get clusters -w --sort-by .id":          "--sort-by is for a list",
		"get cluster c2 --sort-by .id":           "--sort-by is for a list",
		"get clusters --sort-by {.id":            "no path such as",
		"get clusters --sort-by .nothing":        "no item has this field: it has .cached, ",
		"get clusters --since 10m":               "no time of clusters is kept",
		"get events 1 --since 10m":               "leave out one of them",
		"get events --since -1m":                 "positive",
		"get clusters -o jsonpath":               "give its path",
		"get clusters -o jsonpath={.items[*].id": "no path such as",
		"get clusters -o go-template={{.items}}": "must be one of",
		"get clusters -o custom-columns=A":       "give titles and paths",
		"get clusters -o custom-columns":         "give titles and paths",
		"get clusters -o custom-columns=A:{.id":  "no path such as",
		"top --once -o custom-columns=A:.id":     "must be one of",
	} {
		if got := a.Ask(strings.Split(args, " ")...); got.Code != exit.Usage || !strings.Contains(got.Err, want) {
			t.Errorf("%s: exit %d, %q, which has no %q", args, got.Code, got.Err, want)
		}
	}
}

// TestSince: events and conflicts of a time before now are shown.
func TestSince(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Well("c3", 3))
	for _, list := range []string{"events", "conflicts"} {
		all := a.Ask("get", list, "-o", "name").Out
		if all == "" {
			t.Fatalf("there are no %s", list)
		}
		if got := a.Ask("get", list, "-o", "name", "--since", "200000h").Out; got != all {
			t.Errorf("%s of many years: %q, want %q", list, got, all)
		}
		if got := a.Ask("get", list, "-o", "name", "--since", "1ns"); got.Code != exit.OK || got.Out != "" {
			t.Errorf("%s of this moment: exit %d, %q", list, got.Code, got.Out)
		}
	}
}

// TestHelpIsInGroups: each command is in a group.
func TestHelpIsInGroups(t *testing.T) {
	t.Parallel()
	out := clitest.With(nil, "/nonexistent", "127.0.0.1:1").Run("--help").Out
	for _, title := range []string{"See the mesh:", "Find what is wrong:", "Run:", "Use the data elsewhere:", "Administer:", "Additional Commands:"} {
		if !strings.Contains(out, title) {
			t.Errorf("no group %q in\n%s", title, out)
		}
	}
	_, rest, _ := strings.Cut(out, "Additional Commands:")
	rest, _, _ = strings.Cut(rest, "Flags:")
	if got := strings.Count(strings.TrimSpace(rest), "\n") + 1; got != 3 { // completion, help and version
		t.Errorf("%d commands are in no group:\n%s", got, rest)
	}
}
