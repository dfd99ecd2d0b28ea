// Package codes is the registry of findings: everything the agent can say about a
// mesh that somebody may have to act on has a [Code], and here is what each of them
// means. Events, conflicts, states of clusters, verdicts, checks and lines of the
// log carry the codes; 'mesh-agent explain' and docs/codes.md are made from here.
//
// A code is never given to another finding, and one that is not found any more
// keeps its number for itself. The first digit says what it is about: 1 clusters,
// 2 services, 3 addresses, 4 identities, 5 nodes, 6 configurations, 7 the agent
// itself.
//
// The registry is data without state: each call makes it anew.
package codes

import (
	"slices"
	"strings"
)

// Code names a finding for good, as in MESH-2104.
type Code string

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Info    Severity = "info"    // nothing has to be done
	Warning Severity = "warning" // it works, and somebody should look
	Error   Severity = "error"   // something does not work until somebody acts
)

// Owner is the part of the program that finds something. Its tests prove that
// each of its codes is reached.
type Owner string

// Entry is one finding.
type Entry struct {
	Code     Code     `json:"code"`
	Title    string   `json:"title"` // what is so, in a few words
	Severity Severity `json:"severity"`
	Owner    Owner    `json:"-"`
	Cause    string   `json:"cause"`  // when it is found, and what that means
	Remedy   string   `json:"remedy"` // what to do about it
}

// All returns every finding, sorted by code.
func All() []Entry {
	var all []Entry
	for owner, entries := range owners() {
		for _, e := range entries {
			e.Owner = owner
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(string(a.Code), string(b.Code)) })
	return all
}

// Find returns a finding. The code may be written in any case, and without the
// letters before its number.
func Find(code string) (Entry, bool) {
	number := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(code)), prefix)
	for _, e := range All() {
		if string(e.Code) == prefix+number {
			return e, true
		}
	}
	return Entry{}, false
}

// Severities returns how bad each finding is. Who asks often keeps it.
func Severities() map[Code]Severity {
	all := make(map[Code]Severity)
	for _, e := range All() {
		all[e.Code] = e.Severity
	}
	return all
}

const prefix = "MESH-"
