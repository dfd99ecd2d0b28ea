package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/clitest"
)

// TestOneWordForOneThing: texts for people use the terms of docs/glossary.md, also where the fields of JSON have other
// names.
func TestOneWordForOneThing(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Lost("c3"))
	others := regexp.MustCompile(`\b(REJECTED|IPS|SYNCED|LAGGING|BEHIND|OUTDATED|Configuration file|Rejected|Synced)\b`)
	for _, args := range []string{
		"get clusters -o wide", "get nodes -o wide", "get services -o wide", "get serviceexports -o wide", "get identities -o wide", "get ips -o wide",
		"get conflicts -o wide", "get events -o wide", "get health -o wide", "status", "status -o wide", "top --once --interval 10ms", "describe cluster c2", "lookup 10.2.1.10",
	} {
		got := a.Ask(strings.Fields(args)...)
		if got.Out == "" {
			t.Errorf("%s says nothing: %s", args, got.Err)
		}
		if word := others.FindString(got.Out); word != "" {
			t.Errorf("%s says %s:\n%s", args, word, got.Out)
		}
	}
	for args, want := range map[string]string{
		"get clusters -o wide":       "ADDRESSES  FRESHNESS    REFUSED",
		"top --once --interval 10ms": "FRESHNESS  ENTRIES  CHANGE  REFUSED",
		"describe cluster c2":        "LISTED  ENTRIES  REFUSED  FRESHNESS",
	} {
		if got := a.Ask(strings.Fields(args)...); !strings.Contains(got.Out, want) {
			t.Errorf("%s has no %q:\n%s", args, want, got.Out)
		}
	}
}

// TestUnknownResources: a similar name is suggested; addresses have two names.
func TestUnknownResources(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	for args, want := range map[string]string{
		"get servics":         "did you mean services or service?",
		"describe nod c2/n1":  "did you mean node",
		"get secrets":         `unknown resource "secrets": want one of clusters`,
		"describe clutser c2": "did you mean cluster",
	} {
		if got := a.Ask(strings.Fields(args)...); got.Code != 2 || !strings.Contains(got.Err, want) {
			t.Errorf("%s: exit %d, %s", args, got.Code, got.Err)
		}
	}
	if ips, addresses := a.Ask("get", "ips"), a.Ask("get", "addresses"); ips.Out == "" || ips.Out != addresses.Out {
		t.Errorf("get ips\n%s\nget addresses\n%s", ips.Out, addresses.Out)
	}
}
