package remotecluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/scripttest"
)

var update = flag.Bool("update", false, "write what the scripts of testdata come to into them")

// TestScripts runs the scripts of testdata, which testdata/README.md explains. Together
// they reach every state.
func TestScripts(t *testing.T) {
	t.Parallel()
	var reached []codes.Code
	scripttest.Run(t, *update, func() scripttest.Player {
		p := newPlay()
		p.reached = &reached
		return p
	})
	codestest.Reached(t, codes.States, reached...)
}

// play is the state of a running script.
type play struct {
	rules rules
	state state
	facts facts
	now   time.Time

	reached *[]codes.Code
}

func newPlay() *play {
	return &play{
		rules: rules{name: "c2", staleAfter: 30 * time.Second, budget: budget.Default()},
		now:   time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

func (p *play) happens(e event) { p.state = p.state.after(e, p.now) }

// Do executes one line of a script: a word, followed by arguments of the form NAME, NAME=VALUE or "text".
func (p *play) Do(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	a, err := parseArguments(rest)
	if err != nil {
		return err
	}
	switch verb {
	case "new":
		reached := p.reached
		*p = *newPlay()
		p.reached = reached
		p.rules.skipOptional = a.is("skip-optional")
		p.rules.cacheTTL = a.span("cache-ttl")
	case "wait":
		p.now = p.now.Add(a.span("for"))
		if p.rules.cacheTTL > 0 {
			p.happens(timePassed(p.rules.cacheTTL))
		}
	case "file":
		p.happens(started("/mesh/c2"))
		p.happens(fileRead([]string{"https://c2:2379"}, [32]byte{}))
	case "open":
		p.happens(entered(phaseConnect))
		p.happens(opened(p.now, "e7cd"))
		p.happens(entered(phaseConfig))
		p.facts = facts{config: &configFacts{key: wire.ClusterConfigKey("c2"), Status: store.Status{FollowStatus: store.FollowStatus{Following: true, AsOf: p.now}}}, families: p.facts.families}
	case "end":
		p.end(a)
	case "failed":
		p.happens(attemptFailed(a.error(), a.span("pause")))
	case "probe":
		p.probe(a.error())
	case "certificate":
		p.happens(certificateRead(p.now.Add(a.span("left")), textOf(a.error())))
	case "server":
		p.facts.handshake, p.facts.faults = p.now, kvstore.DescribeFaults(a.values["version"])
		p.facts.version, p.facts.serverEnds, p.facts.authorityEnds = a.values["version"], p.ends(a, "left"), p.ends(a, "authority")
	case "nospace":
		p.facts.noSpace = true
	case "heartbeat":
		p.facts.heartbeat = kvstore.HeartbeatStatus{Seen: p.now, Stale: a.is("stale")}
	case "config":
		return p.config(a)
	case "around":
		p.happens(lookedAround(surroundings{empty: a.is("empty"), others: strings.FieldsFunc(a.values["of"], func(r rune) bool { return r == ',' })}))
	case "canary":
		for _, r := range a.words {
			p.facts.canaries.seen[wire.Resource(r)] = true
		}
	case "overdue":
		p.happens(canaryOverdue(wire.Resource(a.words[0]), true))
	case "source":
		return p.source(wire.Resource(a.words[0]), a)
	case "synced":
		p.happens(allSynced)
	case "removed":
		p.happens(removalBegun)
	case "drained":
		p.happens(drained)
	default:
		return fmt.Errorf("there is no event %q", verb)
	}
	return nil
}

// textOf returns the text of an error; empty without one.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ends returns the time that an argument sets relative to now; zero without the argument.
func (p *play) ends(a arguments, name string) (until time.Time) {
	if left := a.span(name); left != 0 {
		until = p.now.Add(left)
	}
	return until
}

func (p *play) end(a arguments) {
	why := a.error()
	if a.is("overdue") {
		why = &overdue{why}
	}
	p.happens(ended(why, p.facts.heartbeat.Seen, p.facts.config.AsOf))
	p.facts = facts{families: p.facts.families}
	for i := range p.facts.families {
		p.facts.families[i].Following = false
	}
	if !errors.Is(why, context.Canceled) {
		p.happens(attemptFailed(why, a.span("pause")))
	}
}

// probe applies a probe, which confirms the followed resources, or fails.
func (p *play) probe(err error) {
	p.happens(probed(kvstore.Probe{At: p.now, Err: err}))
	if err != nil {
		return
	}
	p.facts.config.AsOf = p.now
	for i := range p.facts.families {
		if s := &p.facts.families[i]; s.Following {
			s.AsOf = p.now
		}
	}
}

// config applies an event of the cluster configuration.
func (p *play) config(a arguments) error {
	if read := !a.is("malformed") && !a.is("deleted"); read {
		p.facts.config.Rejected, p.facts.config.vanished = 0, false
	}
	switch {
	case a.is("handed"):
		p.happens(handing(true))
	case a.is("malformed"):
		p.facts.config.Rejected, p.facts.config.Example = 1, store.Refusal{Key: p.facts.config.key, Why: "malformed: " + a.text}
	case a.is("deleted"):
		p.facts.config.vanished = true
	case a.is("refused"):
		p.happens(configRefused(a.error()))
	case a.is("conflict"):
		p.happens(configRefused(&IDConflict{ID: uint32(a.number("id")), Holder: a.values["holder"], Remembered: a.is("remembered")}))
	case a.is("inadmissible"):
		p.happens(configRefused(&Inadmissible{Code: codes.Code(a.values["code"]), Why: a.text}))
	default:
		exports := a.is("exports")
		cfg := wire.ClusterConfig{ID: uint32(a.number("id")), Capabilities: wire.Capabilities{
			Cached: a.is("cached"), SyncedCanaries: a.is("canaries"), ServiceExportsEnabled: &exports, EndpointSlicesExportMode: a.values["slices"],
		}}
		p.happens(handing(false))
		p.happens(configAdopted(cfg))
		p.facts.config.cached = cfg.Capabilities.Cached
		p.facts.canaries = &canaryFacts{cached: cfg.Capabilities.Cached, seen: make(map[wire.Resource]bool)}
		for _, r := range wire.Resources() {
			p.facts.canaries.seen[r] = !cfg.Capabilities.SyncedCanaries
		}
	}
	return a.unread()
}

// source sets the status of a source.
func (p *play) source(r wire.Resource, a arguments) error {
	st := store.Status{Count: a.number("count"), Rejected: a.number("rejected"), Pending: a.number("pending"), FollowStatus: store.FollowStatus{
		Synced: a.is("synced") || a.is("follows"), Following: a.is("follows"), Followed: a.is("follows") || a.is("followed"), Listing: a.is("lists"),
		Read: a.number("read"), Total: a.number("total"), Err: a.error(),
	}}
	if st.Synced {
		st.AsOf, st.Every = p.now.Add(-a.span("age")), a.span("every")
	}
	if reason, given := a.values["for"]; given {
		st.Rejections = map[wire.Reason]int{wire.Reason(reason): st.Rejected}
		st.Over = map[string]store.Over{"keys": store.OverKeys, "memory": store.OverMemory}[a.values["over"]]
	}
	if a.is("paced") {
		st.Paced = p.now
	}
	f := familyFacts{r, st}
	if i := slices.IndexFunc(p.facts.families, func(s familyFacts) bool { return s.resource == r }); i >= 0 {
		p.facts.families[i] = f
	} else {
		p.facts.families = append(p.facts.families, f)
	}
	return a.unread()
}

// Said returns the resulting status of the cluster.
func (p *play) Said() string {
	var b strings.Builder
	j := judge(p.rules, p.state, p.facts, p.now)
	s := j.status
	*p.reached = append(*p.reached, s.Code)
	fmt.Fprintf(&b, "%s %s", s.State, s.Code)
	for _, flag := range []struct {
		yes  bool
		text string
	}{
		{s.Ready, "ready"},
		{s.Connected, "connected"},
		{s.ID != 0, fmt.Sprint("id=", s.ID)},
		{s.Failures > 0, fmt.Sprint("failures=", s.Failures)},
		{s.ConsecFailures > 0, fmt.Sprint("in-a-row=", s.ConsecFailures)},
		{!s.Withheld.IsZero(), "withheld"},
		{s.Revocations > 0, fmt.Sprint("revocations=", s.Revocations)},
		{s.IDConflict != nil, "conflict"},
		{j.state.inVain, "in-vain"},
		{s.LastLoss != "", fmt.Sprintf("loss=%q", s.LastLoss)},
	} {
		if flag.yes {
			b.WriteString(" " + flag.text)
		}
	}
	b.WriteString("\n")
	if s.Message != "" {
		fmt.Fprintf(&b, "  %s\n", s.Message)
	}
	for _, n := range s.Notices {
		if *p.reached = append(*p.reached, n.Code); !slices.Contains(NoticeCodes(), n.Code) {
			fmt.Fprintf(&b, "  %s is none of the codes of notices\n", n.Code)
		}
		fmt.Fprintf(&b, "  notice %s: %s\n", n.Code, n.Message)
	}
	for _, src := range j.families {
		is := s.Families[src.resource]
		fmt.Fprintf(&b, "  %s: %d, %s", src.resource, is.Count, is.Freshness.State)
		if !is.Freshness.AsOf.IsZero() {
			fmt.Fprintf(&b, " as of %s", is.Freshness.AsOf.Format(time.TimeOnly))
		}
		for text, yes := range map[string]bool{", not exported": !is.Exported, ", late": is.Late} {
			if yes {
				b.WriteString(text)
			}
		}
		if is.Why != "" {
			b.WriteString(": " + is.Why)
		}
		b.WriteString("\n")
	}
	return b.String()
}
