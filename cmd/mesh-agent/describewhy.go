package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
)

// why asks why something is as it is, or is not there.
func why(ctx context.Context, cl *client.Client, plural string, parts ...string) (*reasons.Explanation, error) {
	return client.Get[reasons.Explanation](ctx, cl, append([]string{"v1", "why", plural}, parts...)...)
}

// nothing is the description of what is not there.
type nothing struct {
	Why *reasons.Explanation `json:"why"`
}

func (n *nothing) page(p *printer.Page, now time.Time) { pageWhy(p, n.Why, now) }

// pageWhy shows the verdict, and then what led to it.
func pageWhy(p *printer.Page, x *reasons.Explanation, now time.Time) {
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
		if same[s.Code]++; len(s.Keys) > 0 || same[s.Code] <= few || all[s.Code] == few+1 { // a line about the last one is no shorter
			pageStep(p, s, width, now)
		}
	}
	for _, s := range x.Steps {
		if n := same[s.Code] - few; n > 1 {
			p.Line("… and up to %d more with %s (-o yaml lists them)", n, s.Code)
			same[s.Code] = 0
		}
	}
	p.End()
}

func pageStep(p *printer.Page, s reasons.Step, width int, now time.Time) {
	text := s.Text
	if s.AsOf != nil {
		text += ", as of " + moment(s.AsOf, now)
	}
	p.Item(fmt.Sprintf("%-*s  %s  ", width, s.Cluster, s.Code), "%s", text)
	for _, k := range s.Keys {
		read := ""
		if k.Read != nil {
			read = ", read " + moment(k.Read, now)
		}
		p.Item(fmt.Sprintf("%-*s  ", width, ""), "%s, revision %d%s", k.Key, k.Revision, read)
	}
}
