package codes

import (
	"slices"
	"strconv"
	"strings"
)

// Subject has the names of the objects of a finding. They are used in the commands of its remedy.
type Subject struct {
	Clusters []string
	Own      bool   // the cluster is the agent's own one
	ID       uint32 // the cluster ID of the first of them
	Service  string // NAMESPACE/NAME
	Address  string
}

// Cluster returns the subject of a finding about one cluster.
func Cluster(name string) Subject { return Subject{Clusters: []string{name}} }

// mostNamed is how many clusters a command names.
const mostNamed = 5

// Fill replaces the placeholders CLUSTER, NAME, ID, NAMESPACE/NAME and ADDRESS in the commands of a remedy by names, so
// that they can be pasted. Names come from outside: a name that a shell would change is left out of the command.
func (s Subject) Fill(remedy string) string {
	clusters := slices.DeleteFunc(slices.Clone(s.Clusters), func(name string) bool { return !Plain(name) })
	put := func(before, placeholder, name string) {
		if Plain(name) {
			remedy = strings.ReplaceAll(remedy, before+placeholder, before+name)
		}
	}
	switch {
	case s.Own:
		remedy = strings.ReplaceAll(remedy, "troubleshoot CLUSTER", "troubleshoot --include-local")
	case len(clusters) > 0:
		names := strings.Join(clusters[:min(len(clusters), mostNamed)], " ")
		remedy = strings.ReplaceAll(remedy, "troubleshoot CLUSTER", "troubleshoot "+names)
		put("describe cluster ", "NAME", clusters[0])
		put("--remote-budget ", "CLUSTER", clusters[0])
		put("--cluster-name ", "NAME", clusters[0])
	}
	if s.ID != 0 {
		put("--cluster-id ", "ID", strconv.FormatUint(uint64(s.ID), 10))
	}
	put("describe service ", "NAMESPACE/NAME", s.Service)
	put("lookup ", "ADDRESS", s.Address)
	return remedy
}

// Plain reports whether a shell takes a text unchanged as one word, and no command takes it for a flag.
func Plain(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._:/-", rune(c))) {
			return false
		}
	}
	return text != ""
}

// Quote returns a text as one word for a shell: unchanged if that is possible, else in quotes.
func Quote(text string) string {
	if plain := strings.ReplaceAll(strings.TrimPrefix(text, "/"), "=", ""); Plain(plain) && text[0] != '=' {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
