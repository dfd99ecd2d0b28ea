package manifests

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/dirwatch"
	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// Source keeps the tables of the own cluster as the directory says.
type Source struct {
	// Report is told whether the directory can be read, again and again; nil is
	// nobody. It must be set before Run.
	Report func(error)

	dir   *dirwatch.Directory[*file]
	log   *slog.Logger
	into  *local.Cluster
	sinks map[string]sink

	scanner scanner

	// What follows belongs to the goroutine of Run.
	seen  map[string]*file // as the directory was when it was taken over
	good  map[string]*file // each file when nothing in it was bad last
	whole bool             // each file was good once

	mu     sync.Mutex
	status Status
}

// Status is what there is to say of the source at one moment.
type Status struct {
	Directory string `json:"directory"`
	// Listed: everything was read at least once. Whole: each file was once, since
	// the start, without a mistake, so what is missing is not there; until then
	// nothing is withdrawn.
	Listed bool `json:"listed"`
	Whole  bool `json:"whole"`
	// Error says why the directory cannot be read; what is known is kept.
	Error string `json:"error,omitempty"`
	// Objects are how many objects of each kind there are.
	Objects map[string]int `json:"objects,omitempty"`
	// Problems are what does not count, and why; sorted by file and document.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is a file, or a document in it, that does not count.
type Problem struct {
	File     string `json:"file"`
	Document int    `json:"document,omitempty"` // from 1; 0 is the whole file
	Reason   string `json:"reason"`
	// Ignored: nobody needs what does not count, so it is no mistake.
	Ignored bool `json:"ignored,omitempty"`
}

// String is the problem in a line.
func (p Problem) String() string {
	if p.Document == 0 {
		return p.File + ": " + p.Reason
	}
	return fmt.Sprintf("%s, document %d: %s", p.File, p.Document, p.Reason)
}

// New returns a source that reads nothing yet. It is the one writer of the tables.
func New(dir string, into *local.Cluster, log *slog.Logger) *Source {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	into.Doubt()
	s := &Source{log: log, into: into, sinks: sinks(into), good: make(map[string]*file), scanner: scanner{dir: dir}}
	s.dir = dirwatch.New[*file](dir, "directory of manifests", nil, log)
	s.dir.Judge = judge
	s.status.Directory = s.dir.Path
	return s
}

// Run follows the directory until ctx ends, and then withdraws nothing. A
// directory that is absent is waited for. What it said first makes the tables
// listed ([local.Objects.Listed]), and the description whole ([local.Cluster.Whole])
// if there is no mistake in it; else this waits for all files to be mended.
func (s *Source) Run(ctx context.Context) error {
	s.dir.Report = s.Report
	s.dir.Scan = func() (dirwatch.Listing[*file], error) { return s.scan(ctx) }
	return s.dir.Run(ctx, s.found)
}

// Status says how the source is doing.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Objects = maps.Clone(status.Objects)
	status.Problems = slices.Clone(status.Problems)
	return status
}

// found takes over what the directory says now.
func (s *Source) found(files map[string]*file, err error) {
	if err != nil {
		s.mu.Lock()
		s.status.Error = err.Error()
		s.mu.Unlock()
		return
	}
	if s.seen == nil || !maps.Equal(s.seen, files) {
		s.take(files)
		s.seen = files
	}
	s.mu.Lock()
	s.status.Error = ""
	s.mu.Unlock()
}

// take fills the tables from the files.
func (s *Source) take(files map[string]*file) {
	maps.DeleteFunc(s.good, func(name string, _ *file) bool { return files[name] == nil })
	counts, problems := s.judge(files)
	objects, twice := gather(counts)
	problems = append(problems, twice...)
	for i := range problems {
		problems[i].File = s.path(problems[i].File)
	}
	numbers := make(map[string]int)
	for kind, sink := range s.sinks {
		sink.apply(objects[kind])
		if n := len(objects[kind]); n > 0 {
			numbers[kind] = n
		}
	}
	for _, sink := range s.sinks {
		sink.listed()
	}
	s.say(problems, numbers)
	if !s.whole && len(s.good) == len(files) {
		s.whole = true
		s.into.Whole()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Whole = s.whole
}

// firstLooks bounds how often the first look at a directory that changes is put
// off.
const firstLooks = 20

// scan looks at the directory. The first time it waits until nothing in it is so
// young that it may be half written: there is nothing from before to tell.
func (s *Source) scan(ctx context.Context) (dirwatch.Listing[*file], error) {
	l, err := s.scanner.scan()
	for n := 0; err == nil && s.seen == nil && n < firstLooks && time.Since(s.scanner.modified) < s.dir.Confirm; n++ {
		if err := waiting.Sleep(ctx, s.dir.Confirm); err != nil {
			return l, err
		}
		l, err = s.scanner.scan()
	}
	return l, err
}

func (s *Source) path(name string) string { return s.dir.Path + "/" + name }

// judge decides what counts of each file, and says what does not.
func (s *Source) judge(files map[string]*file) (counts map[string]*file, problems []Problem) {
	counts = make(map[string]*file, len(files))
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		if len(f.bad) == 0 {
			s.good[name] = f
		}
		rest := "what the file said before stays in force"
		if counts[name] = s.good[name]; counts[name] == nil {
			counts[name], rest = f, "the rest of the file counts"
			if !s.whole {
				rest += ", and nothing of our own cluster is withdrawn before it is mended"
			}
		}
		for _, p := range f.bad {
			problems = append(problems, Problem{File: name, Document: p.Document, Reason: p.Reason + "; " + rest})
		}
		for _, kind := range f.unknown {
			if !slices.Contains(unknown, kind) {
				unknown = append(unknown, kind)
				problems = append(problems, Problem{File: name, Ignored: true, Reason: "objects of the kind " + kind + " are ignored, here and elsewhere: nothing is published of them"})
			}
		}
	}
	return counts, problems
}

// gather lists the objects by kind. Of those that are there twice the first
// counts, by file and document.
func gather(files map[string]*file) (objects map[string][]document, problems []Problem) {
	objects = make(map[string][]document)
	type identity struct{ kind, name string }
	in := make(map[identity]string)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, d := range files[name].documents {
			id := identity{d.kind, d.name}
			if first, twice := in[id]; twice {
				problems = append(problems, Problem{File: name, Document: d.number, Reason: fmt.Sprintf(
					"the %s %s is also in %s, which counts because it comes first; remove one of them", d.kind, d.name, first)})
				continue
			}
			in[id] = fmt.Sprintf("%s, document %d", name, d.number)
			objects[d.kind] = append(objects[d.kind], d)
		}
	}
	return objects, problems
}

// say notes and logs what was found.
func (s *Source) say(problems []Problem, objects map[string]int) {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document), strings.Compare(a.Reason, b.Reason))
	})
	before := s.Status().Problems
	for _, p := range problems {
		if !slices.Contains(before, p) {
			s.log.Warn("Not everything in the manifests counts", "file", p.File, "document", p.Document, "reason", p.Reason)
		}
	}
	now := mistakes(problems)
	if len(now) == 0 && len(mistakes(before)) > 0 {
		s.log.Info("Everything in the manifests counts again", "directory", s.dir.Path)
	}
	s.into.Refuse(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Listed, s.status.Problems, s.status.Objects = true, problems, objects
}

// mistakes are the problems that somebody should do something about.
func mistakes(problems []Problem) (lines []string) {
	for _, p := range problems {
		if !p.Ignored {
			lines = append(lines, p.String())
		}
	}
	return lines
}
