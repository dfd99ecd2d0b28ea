package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// surroundings is the configuration of the agent at one look.
type surroundings struct {
	ignored  []clustermesh.Ignored // sorted by file
	mistakes string                // in the description of the own cluster; empty when there are none
	level    string                // of the log; empty when unknown
}

// agentEvents returns the events of the surroundings between two looks.
func agentEvents(before, now surroundings) []Event {
	events := fileEvents(before.ignored, now.ignored)
	switch was, is := before.mistakes, now.mistakes; {
	case withoutPorts(was) == withoutPorts(is):
	case is == "":
		events = append(events, agentEvent("description-well", codes.DescriptionWell, "the whole description of the own cluster can be used again", "health", "local.source"))
	default:
		events = append(events, agentEvent("description-broken", codes.DescriptionBroken,
			"not all of the description of the own cluster can be used, the agent keeps the previous data: "+is, "health", "local.source", "problem", is))
	}
	if before.level != "" && now.level != before.level {
		events = append(events, agentEvent("log-level", codes.LogLevelChanged,
			fmt.Sprintf("the level of the log is %s, was %s", now.level, before.level), "", "", "before", before.level, "now", now.level))
	}
	return events
}

// fileEvents returns events for files of the mesh directory that are newly ignored, or no longer ignored.
func fileEvents(before, now []clustermesh.Ignored) []Event {
	var events []Event
	for _, i := range now {
		switch {
		case slices.Contains(before, i):
		case i.Directory:
			events = append(events, agentEvent("directory-unreadable", codes.DirectoryUnreadable,
				fmt.Sprintf("the mesh directory %s: %s", i.File, i.Reason), "", "", "directory", i.File))
		default:
			events = append(events, agentEvent("file-ignored", codes.FileIgnored,
				fmt.Sprintf("%s in the mesh directory is ignored: %s", i.File, i.Reason), "", "", "file", i.File, "reason", i.Reason))
		}
	}
	for _, i := range before {
		switch {
		case slices.ContainsFunc(now, func(o clustermesh.Ignored) bool { return o.File == i.File || o.Directory }):
			// It is ignored for another reason now, or the directory cannot be read.
		case i.Directory:
			events = append(events, agentEvent("directory-readable", codes.DirectoryReadable,
				fmt.Sprintf("the mesh directory %s can be read again", i.File), "", "", "directory", i.File))
		default:
			events = append(events, agentEvent("file-taken", codes.FileTaken,
				fmt.Sprintf("%s in the mesh directory is no longer ignored", i.File), "", "", "file", i.File))
		}
	}
	return events
}

// agentEvent returns an event that is about no cluster; evidence is name, value, name, value.
func agentEvent(kind string, code codes.Code, message, resource, name string, evidence ...string) Event {
	return Event{Kind: kind, Code: code, Message: message, Resource: resource, Name: name, Evidence: pairs(evidence)}
}

// maxMistakes is how many mistakes of the description a message names.
const maxMistakes = 3

// mistakes returns the problems of the description; empty when there are none.
func mistakes(err error, refused []string) string {
	if err != nil {
		return err.Error()
	}
	text := strings.Join(refused[:min(len(refused), maxMistakes)], "; ")
	if n := len(refused) - maxMistakes; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}
