package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The annotations of a flag: the subject under which the help shows it, and the modes that use it, unless all do.
const (
	subjectOfFlag = "subject"
	modesOfFlag   = "modes"
)

// uses reports whether a mode uses a setting.
func uses(m Mode, f *pflag.Flag) bool {
	modes := f.Annotations[modesOfFlag]
	return len(modes) == 0 || slices.Contains(modes, string(m))
}

// Unused returns the names of the settings that are given and that this mode does not use.
func (s *Settings) Unused(m Mode) (names []string) {
	s.flags.VisitAll(func(f *pflag.Flag) {
		if s.from[f.Name] != "" && !uses(m, f) {
			names = append(names, f.Name)
		}
	})
	return names
}

// OnCommandLine reports whether the value of a flag is from the command line.
func (s *Settings) OnCommandLine(name string) bool { return s.from[name] == "--"+name }

// RegisterMode registers the flags of a mode. A mode accepts the flags of the other modes too, so that they can share
// a file, but does not show them.
func (s *Settings) RegisterMode(to *pflag.FlagSet, m Mode) {
	s.flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !uses(m, f) })
	s.Register(to)
}

// Help returns the help of the flags that the mode uses, one line for each, by subject. The other flags of the
// command are the last subject.
func (s *Settings) Help(command *pflag.FlagSet) string {
	const others = "Other"
	var subjects []string
	of := make(map[string]*pflag.FlagSet)
	add := func(subject string, f *pflag.Flag) {
		if of[subject] == nil {
			subjects = append(subjects, subject)
			of[subject] = pflag.NewFlagSet(subject, pflag.ContinueOnError)
		}
		of[subject].AddFlag(f)
	}
	s.flags.SortFlags = false
	s.flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			add(f.Annotations[subjectOfFlag][0], f)
		}
	})
	command.VisitAll(func(f *pflag.Flag) {
		if s.flags.Lookup(f.Name) == nil {
			add(others, f)
		}
	})
	var b strings.Builder
	for _, subject := range subjects {
		fmt.Fprintf(&b, "\n  %s:\n%s", subject, of[subject].FlagUsages())
	}
	return b.String()
}
