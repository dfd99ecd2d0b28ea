package manifests

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/dirwatch"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// Source keeps the tables of the own cluster as the directory says.
type Source struct {
	// Report is called repeatedly with whether the directory can be read; it may be nil. It must be set before Run.
	Report func(error)

	dir     *dirwatch.Directory[*file]
	log     *slog.Logger
	into    *local.Cluster
	kinds   []kind
	scanner scanner

	// The fields below belong to the goroutine of Run.
	seen     map[string]*file // as the directory was when it was taken over
	looks    int              // until nothing was being written
	calm     bool             // nothing was being written when it was looked at, as far as times tell
	good     map[string]*file // each file when nothing in it was bad last
	whole    bool             // each file was good once, so missing objects do not exist
	problems []problem        // the parts of files that do not count; sorted by file and document
}

// problem is a file, or a document in it, that does not count.
type problem struct {
	file     string
	document int // from 1; 0 is the whole file
	reason   string
	ignored  bool // no reader needs this kind, so it is no mistake
}

// String is the problem in a line.
func (p problem) String() string {
	if p.document == 0 {
		return p.file + ": " + p.reason
	}
	return fmt.Sprintf("%s, document %d: %s", p.file, p.document, p.reason)
}

// New returns a source that reads nothing yet. It is the one writer of the tables.
func New(dir string, into *local.Cluster, log *slog.Logger) *Source {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	into.Doubt()
	s := &Source{log: log, into: into, kinds: kinds(into), good: make(map[string]*file)}
	s.scanner = scanner{dir: dir, kinds: s.kinds}
	s.dir = dirwatch.New[*file](dir, "directory of manifests", nil, log)
	s.dir.Judge = judge
	return s
}

// Run follows the directory until ctx ends, and then withdraws nothing. Run waits for a directory that does not exist.
// Its first content makes the tables listed ([local.Objects.Listed]), and the description whole ([local.Cluster.Whole])
// once the directory is not being written and has no mistake.
func (s *Source) Run(ctx context.Context) error {
	s.dir.Report = s.Report
	s.dir.Scan = func() (dirwatch.Listing[*file], error) { return s.scan(ctx) }
	return s.dir.Run(ctx, s.found)
}

// found takes over what the directory says now.
func (s *Source) found(files map[string]*file, err error) {
	if err == nil && (s.seen == nil || !maps.Equal(s.seen, files)) {
		s.take(files)
		s.seen = files
	}
	if err == nil && !s.whole && s.calm && len(s.good) == len(files) {
		s.whole = true
		s.into.Whole()
	}
}

// take fills the tables from the files.
func (s *Source) take(files map[string]*file) {
	maps.DeleteFunc(s.good, func(name string, _ *file) bool { return files[name] == nil })
	counts, problems := s.judge(files)
	objects, twice := gather(counts)
	problems = append(problems, twice...)
	for i := range problems {
		problems[i].file = s.dir.Path + "/" + problems[i].file
	}
	for _, k := range s.kinds {
		k.apply(objects[k.name])
	}
	s.into.Listed()
	s.report(problems)
}

// A look at a directory that changes is put off putOff times, and after firstLooks the directory counts as calm.
const (
	putOff     = 2
	firstLooks = 20
)

// scan looks at the directory. In the beginning it waits a little for a state in which nothing is so young that it may
// be half written: there is nothing from before to tell. While it changes all the time it counts as it is, but nothing is
// withdrawn before it is calm.
func (s *Source) scan(ctx context.Context) (dirwatch.Listing[*file], error) {
	l, err := s.scanner.scan()
	for n := 0; err == nil && !s.calm; n++ {
		s.looks++
		if s.calm = time.Since(s.scanner.modified) >= s.dir.Confirm || s.looks > firstLooks; s.calm || n == putOff {
			break
		}
		if err := waiting.Sleep(ctx, s.dir.Confirm); err != nil {
			return l, err
		}
		l, err = s.scanner.scan()
	}
	return l, err
}

// judge decides what counts of each file, and says what does not.
func (s *Source) judge(files map[string]*file) (counts map[string]*file, problems []problem) {
	counts = make(map[string]*file, len(files))
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		if len(f.bad) == 0 {
			s.good[name] = f
		}
		rest := "the previous content of the file stays in use"
		if counts[name] = s.good[name]; counts[name] == nil {
			counts[name], rest = f, "the rest of the file counts"
			if !s.whole {
				rest += ", and nothing of the own cluster is withdrawn before it is corrected"
			}
		}
		for _, p := range f.bad {
			problems = append(problems, problem{file: name, document: p.document, reason: p.reason + "; " + rest})
		}
		for _, kind := range f.unknown {
			if !slices.Contains(unknown, kind) {
				unknown = append(unknown, kind)
				problems = append(problems, problem{file: name, ignored: true, reason: "objects of the kind " + kind + " are ignored, here and elsewhere: nothing is published of them"})
			}
		}
	}
	return counts, problems
}

// gather lists the objects by kind. Of those that are there twice the first
// counts, by file and document.
func gather(files map[string]*file) (objects map[string][]document, problems []problem) {
	objects = make(map[string][]document)
	type identity struct{ kind, name string }
	in := make(map[identity]string)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, d := range files[name].documents {
			id := identity{d.kind, d.name}
			if first, twice := in[id]; twice {
				problems = append(problems, problem{file: name, document: d.number, reason: fmt.Sprintf(
					"the %s %s is also in %s, which counts because it comes first; remove one of them", d.kind, d.name, first)})
				continue
			}
			in[id] = fmt.Sprintf("%s, document %d", name, d.number)
			objects[d.kind] = append(objects[d.kind], d)
		}
	}
	return objects, problems
}

// report logs what does not count, once, and notes the mistakes.
func (s *Source) report(problems []problem) {
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.document, b.document), strings.Compare(a.reason, b.reason))
	})
	for _, p := range problems {
		if !slices.Contains(s.problems, p) {
			s.log.Warn("A part of the manifests is not used", "file", p.file, "document", p.document, "reason", p.reason)
		}
	}
	now := mistakes(problems)
	if len(now) == 0 && len(mistakes(s.problems)) > 0 {
		s.log.Info("All of the manifests is used again", "directory", s.dir.Path)
	}
	s.problems = problems
	s.into.Refuse(now)
}

// mistakes are the problems that the user should correct.
func mistakes(problems []problem) (lines []string) {
	for _, p := range problems {
		if !p.ignored {
			lines = append(lines, p.String())
		}
	}
	return lines
}
