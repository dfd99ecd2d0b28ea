// Package boundary separates the work for one client, one question or one object from all other work. A failure in it
// ends only this work, and neither the process nor the work for others.
//
// Each part of the program that serves clients, or writes objects of remote clusters somewhere, has a [Boundary]. A
// failure there is a bug of this program: input is checked before it is used. It is counted, and logged with its
// stack and a code (MESH-7060).
//
// Concurrency: everything may be used by any number of goroutines.
package boundary

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// ErrInternal is the error for the client. The log has the cause.
var ErrInternal = errors.New("an internal error: the log of the agent says more")

// Boundaries are those of a process. It is a [prometheus.Collector].
type Boundaries struct {
	*prometheus.CounterVec // of failures, by part
	log                    *slog.Logger

	mu   sync.Mutex
	said map[string]struct{} // places and texts that the log has
}

// maxSaid bounds how many different failures the log has; more are only counted.
const maxSaid = 256

// New returns boundaries in which nothing has failed. A nil log is silence.
func New(log *slog.Logger) *Boundaries {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Boundaries{
		CounterVec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_agent_internal_errors_total",
			Help: "Internal errors that ended the work for one client, question or object, by part of the program.",
		}, []string{"part"}),
		log: log, said: make(map[string]struct{}),
	}
}

// Part returns the boundary of a part of the program, such as "dns". Its series is there from now on. The
// boundary of nil Boundaries counts and logs nothing.
func (b *Boundaries) Part(name string) *Boundary {
	if b == nil {
		b = New(nil)
	}
	return &Boundary{of: b, part: name, failures: b.WithLabelValues(name)}
}

// Boundary is that of one part of the program.
type Boundary struct {
	of       *Boundaries
	part     string
	failures prometheus.Counter
}

// Run calls f, and returns its error unchanged. A panic becomes [ErrInternal]. The attributes, as those of slog, name
// the owner of the work in the log.
func (b *Boundary) Run(f func() error, attributes ...any) error {
	return b.Caught(guard.Run(f), attributes...)
}

// Caught is Run for what [guard.Run] has returned.
func (b *Boundary) Caught(err error, attributes ...any) error {
	p, panicked := errors.AsType[*guard.Panic](err)
	if !panicked {
		return err
	}
	b.report(p.Place, append([]any{"error", p, "stack", p.Stack}, attributes...))
	return ErrInternal
}

// Report notes an error that only a bug of this program explains, such as an object that cannot be encoded.
// It logs the same text once. Nil is no error.
func (b *Boundary) Report(err error, attributes ...any) {
	if err != nil {
		b.report(err.Error(), append([]any{"error", err}, attributes...))
	}
}

func (b *Boundary) report(what string, attributes []any) {
	b.failures.Inc()
	if b.of.isNew(b.part + " " + what) {
		b.of.log.Error("Internal error; it ended the work for one client, question or object, and is logged once",
			append([]any{"code", codes.WorkFailed, "part", b.part}, attributes...)...)
	}
}

func (b *Boundaries) isNew(what string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, said := b.said[what]; said || len(b.said) >= maxSaid {
		return false
	}
	b.said[what] = struct{}{}
	return true
}
