package explain

import (
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
)

// Few is how many examples a description shows of what there may be a lot of.
const Few = 5

// WriteWhy shows the verdict, and then what led to it.
func WriteWhy(p *printer.Page, x *reasons.Explanation, now time.Time) {
	if x == nil || x.Verdict.Code == "" {
		return
	}
	p.Section("Why")
	p.Text("%s %s", printer.Painted{Text: string(x.Verdict.Code), Color: printer.Bold}, x.Verdict.Text)
	width, all := 0, make(map[codes.Code]int)
	for _, s := range x.Steps {
		width = max(width, len(s.Cluster))
		all[s.Code]++
	}
	same := make(map[codes.Code]int)
	for _, s := range x.Steps {
		if same[s.Code]++; len(s.Keys) > 0 || same[s.Code] <= Few || all[s.Code] == Few+1 { // a line about the last one is no shorter
			pageStep(p, s, width, now)
		}
	}
	for _, s := range x.Steps {
		if n := same[s.Code] - Few; n > 1 {
			p.Line("… and up to %d more with %s (-o yaml lists them)", n, s.Code)
			same[s.Code] = 0
		}
	}
	p.End()
}

func pageStep(p *printer.Page, s reasons.Step, width int, now time.Time) {
	text := s.Text
	if s.AsOf != nil {
		text += ", as of " + printer.Moment(s.AsOf, now)
	}
	p.Item(fmt.Sprintf("%-*s  %s  ", width, s.Cluster, s.Code), "%s", text)
	for _, k := range s.Keys {
		read := ""
		if k.Read != nil {
			read = ", read " + printer.Moment(k.Read, now)
		}
		p.Item(fmt.Sprintf("%-*s  ", width, ""), "%s, revision %d%s", k.Key, k.Revision, read)
	}
}
