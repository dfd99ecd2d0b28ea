package codes

import (
	"fmt"
	"strings"
)

// Document is docs/codes.md.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Codes

Every finding has a code that never changes its meaning: in the log, in ` + "`status`" + `, in conflicts, events, verdicts and
checks. ` + "`mesh-agent explain CODE`" + ` prints what is here. This page is made from the registry, ` + "`pkg/codes`" + `
(` + "`go test ./pkg/codes -update`" + `).
`)
	area := byte(0)
	for _, e := range All() {
		if digit := e.Code[len(prefix)]; digit != area {
			area = digit
			fmt.Fprintf(&b, "\n## %s\n", areaTitle(area))
		}
		fmt.Fprintf(&b, "\n### %s: %s\n\n*%s.* %s\n\n%s\n", e.Code, e.Title, e.Severity, e.Cause, e.Remedy)
	}
	return b.String()
}

func areaTitle(digit byte) string {
	switch digit {
	case '1':
		return "1: Clusters"
	case '2':
		return "2: Services"
	case '3':
		return "3: Addresses"
	case '4':
		return "4: Identities"
	case '5':
		return "5: Nodes"
	case '6':
		return "6: Configurations"
	default:
		return "7: The agent"
	}
}
