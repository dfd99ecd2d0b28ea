package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/mesh-agent/mesh-agent/simtest/agents"
)

// situations counts the log messages of the agents in a campaign, and the begins of faults. It is the
// log handler of the agents.
type situations struct {
	mu     sync.Mutex
	counts map[string]int

	shown slog.Handler // nil: the messages are not shown
}

func newSituations(shown slog.Handler) *situations {
	return &situations{counts: make(map[string]int), shown: shown}
}

// sometimes returns the situations that a long campaign must have seen: otherwise its plans do not test them.
func sometimes() []string {
	all := []string{
		"Resumed", "Listed", "Applied a list", "Stream ended", "The session ended", "The session with the kvstore ended, connecting again",
		"The known revision was compacted, listing again", "The server has another history: it was emptied or restored; listing again",
		"Not connected; the agent keeps the data of the cluster", "Connected", "The client file has changed",
		"Leading", "Waiting to lead",
		"No longer the leader; the written keys stay", "Cannot write to the kvstore, trying again", "Writing to the kvstore again",
		"Withdrawing the copy of a cluster without a client file", "Copied", "Published", "Cannot write the heartbeat, trying again",
		"All EndpointSlices of remote backends are up to date", "Cannot write EndpointSlices of remote backends, trying again",
		exceeded, calmly, readsFull, stray, resumedHTTP, resumedXDS,
		"Deleted an unused mapping", "Wrote a missing mapping in use again", "Registered",
	}
	for _, f := range faults() {
		all = append(all, begins+f.name)
	}
	return all
}

// Situations that the judge meets.
const (
	exceeded = "A family exceeds its budget"
	calmly   = "A kvstore must have what is described"
	// readsFull is a program that must know a kvstore as of now, although that refuses writes.
	readsFull = "A program reads a kvstore that is full"
	stray     = "A write arrives although its client no longer waits"
	// resumedHTTP is a broken connection of a client of the HTTP API.
	resumedHTTP = "A client of the HTTP API connects again"
	resumedXDS  = "A client of xDS connects again"
)

// begins precedes the name of a fault.
const begins = "fault "

// isNever reports whether no fault may cause a log message.
func isNever(message string) bool {
	return strings.HasPrefix(message, "Internal error")
}

func (s *situations) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// missing returns the situations that did not occur.
func (s *situations) missing() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range sometimes() {
		if s.counts[what] == 0 {
			all = append(all, what)
		}
	}
	return all
}

// String is a table of the situations that must occur, with how often they did.
func (s *situations) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(slices.Values(sometimes())) {
		fmt.Fprintf(&b, "%8d %s\n", s.counts[what], what)
	}
	return b.String()
}

// of returns the handler of one world, which reports the messages that must not be, and passes on each that operators see.
func (s *situations) of(found func(error), seen func(agent, message string)) slog.Handler {
	return &messages{s, found, seen, s.shown, ""}
}

// messages is the log handler of a world.
type messages struct {
	all   *situations
	found func(error)
	seen  func(agent, message string)
	shown slog.Handler
	agent string
}

func (m *messages) Enabled(context.Context, slog.Level) bool { return true }

func (m *messages) Handle(ctx context.Context, r slog.Record) error {
	m.all.note(r.Message)
	if r.Level >= slog.LevelInfo {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
		if m.seen(m.agent, text); isNever(r.Message) {
			m.found(fmt.Errorf("an agent says: %s", text))
		}
	}
	if m.shown != nil {
		return m.shown.Handle(ctx, r)
	}
	return nil
}

func (m *messages) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *m
	for _, a := range attrs {
		if a.Key == agents.LogKey {
			n.agent = a.Value.String()
		}
	}
	if n.shown != nil {
		n.shown = n.shown.WithAttrs(attrs)
	}
	return &n
}

func (m *messages) WithGroup(name string) slog.Handler {
	n := *m
	if n.shown != nil {
		n.shown = n.shown.WithGroup(name)
	}
	return &n
}
