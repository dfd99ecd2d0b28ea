package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// This file has the status of the own cluster: its description, and its kvstore with the entries that are written to
// it.

// standsBy reports whether another process leads, and this one waits.
func (v *Page) standsBy() bool { return v.Agent.Leads != nil && !*v.Agent.Leads }

// operates reports whether the process only publishes, and reads no clusters.
func (v *Page) operates() bool { return v.Agent.Mode == string(config.ModeOperate) }

// leads returns the role of a process with leader election.
func leads(yes bool) string {
	if yes {
		return "leading"
	}
	return "standby: another process leads (its own status shows it), or no process can lead"
}

// writeKVStore writes the state of the local kvstore, and after a problem the reason and the remedy, as for a
// cluster.
func (v *Page) writeKVStore(p *printer.Page) {
	k := v.KVStore
	rest := "not connected"
	if k.Connected {
		rest = "connected"
	}
	if len(k.Endpoints) > 0 {
		rest += " to " + strings.Join(k.Endpoints, ", ")
	}
	if k.Lease != "" {
		rest += "; lease " + k.Lease
	}
	if k.HeartbeatAgeSeconds != nil {
		rest += "; heartbeat " + printer.Seconds(*k.HeartbeatAgeSeconds) + " ago"
	}
	if k.WriteOnly {
		p.Text("local kvstore: written to, %s", rest)
		if k.Message != "" {
			code := ""
			if k.Code != "" {
				code = " [" + k.Code + "]"
			}
			p.Item("  ", "%s%s", k.Message, code)
		}
		v.writeWritten(p)
		return
	}
	p.Text("local kvstore: %s, %s", printer.Painted{Text: k.State, Color: clustertext.ClusterColor(api.Cluster{State: k.State})}, rest)
	if own := v.OwnCluster; own != nil && own.Trouble != nil {
		p.Item("  ", "%s", clustertext.Story(own, v.Now, v.wide))
		p.Advice("%s", own.Trouble.Remedy)
	}
	v.writeWritten(p)
}

// writeWritten writes the entries that the process keeps in the kvstore: all of them for an operator, otherwise only
// those with pending or refused writes.
func (v *Page) writeWritten(p *printer.Page) {
	refused := false
	for _, w := range v.KVStore.Written {
		if !v.KVStore.Connected {
			w.LastError = "" // it is shown already
		}
		if w.Pending > 0 || w.Refused > 0 || v.wide || v.operates() {
			p.Item("  ", "%s", writtenText(w))
		}
		refused = refused || w.Refused > 0
	}
	if refused {
		p.Advice("Refused writes are tried again, and delay no other writes. In most cases the user of the client file has no permission to write there.")
	}
}

func writtenText(w api.Written) string {
	text := fmt.Sprintf("%s  %s", w.Prefix, printer.Counted(w.Entries, "entry", "entries"))
	if w.Pending > 0 {
		text += fmt.Sprintf(", %d still to be written", w.Pending)
	}
	if w.Refused > 0 {
		text += fmt.Sprintf(", %d refused", w.Refused)
	}
	if w.LastError != "" {
		text += ": " + w.LastError
	}
	return text
}

func objectsText(d *api.Description) string {
	switch {
	case !d.Listed:
		return "nothing is known yet"
	case len(d.Objects) == 0:
		return "nothing that is read"
	}
	return printer.Join(slices.Sorted(maps.Keys(d.Objects)), ", ", func(kind string) string { return fmt.Sprintf("%d %s", d.Objects[kind], kind) })
}

func (v *Page) writeDoubts(p *printer.Page) {
	d := v.Description
	if d == nil || d.Error == "" && len(d.Refused) == 0 {
		return
	}
	if d.Error != "" {
		p.Section("The description of the own cluster cannot be followed")
		p.Line("%s", d.Error)
		p.Advice("The agent keeps its data, as of %s, and tries again.", cmp.Or(printer.Moment(d.AsOf, v.Now), "no time yet"))
	}
	if len(d.Refused) == 0 {
		return
	}
	shown, rest := d.Refused, 0
	if !v.all && len(shown) > mostStories {
		shown, rest = shown[:mostStories], len(shown)-mostStories
	}
	p.Section("Not everything in the description of the own cluster counts (%s)", printer.Count(len(d.Refused), "mistake"))
	for _, line := range shown {
		p.Item("", "%s", line)
	}
	if rest > 0 {
		p.Line("… and %d more (--all lists them)", rest)
	}
	p.Advice("Correct them: the agent does not use refused content. A previous valid version stays published. The agent uses the new content as soon as the file is correct.")
}
