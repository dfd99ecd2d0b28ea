package claims

import "fmt"

// Mode says what becomes of claims that break a rule, other than those inside the
// own networks, which never count.
type Mode string

// The modes.
const (
	Report  Mode = "report"  // they count as with Cilium, and are findings
	Enforce Mode = "enforce" // they are findings and never count
)

// ParseMode reads a mode.
func ParseMode(text string) (Mode, error) {
	if m := Mode(text); m == Report || m == Enforce {
		return m, nil
	}
	return "", fmt.Errorf("%q is no mode: want %s or %s", text, Report, Enforce)
}
