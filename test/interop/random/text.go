package random

import (
	"strconv"
	"strings"
	"unicode"
)

// The longest names and values that Kubernetes allows.
const (
	maxLabel = 63
	maxName  = 253
	huge     = 64 << 10 // of annotations, seldom
)

// odd are texts that JSON, HTML, shells and label strings care about.
var odd = [...]string{
	"", " ", "=", "a=b=c", ":", "k8s:x=y", "<script>&amp;</script>", `"quoted" 'text' \ back`, "\t\n\r", "\x00\x01\x7f",
	"ünïcode", "日本語", "🚀🚀", "\u2028\u2029", "\ufeff", "null", "true", "0", "{}", "[1]", "%s%d", "../..", "a/b", "$x", "reserved:",
}

// name makes the i-th name of at most so many characters: some are exactly so long.
func name(stem string, i, most int) string {
	n := stem + strconv.Itoa(i)
	if i%13 == 7 {
		n = strings.Repeat("long-", most/5) + "-" + n
		n = "x" + n[len(n)-most+1:]
	}
	return n
}

// text makes any text, seldom one of the given length.
func (m *Maker) text(most int) string {
	switch n := m.r.IntN(100); {
	case n < 50:
		return "v" + strconv.Itoa(m.r.IntN(1000))
	case n < 97:
		return odd[m.r.IntN(len(odd))]
	default:
		return strings.Repeat("é", most/2)
	}
}

// printable makes any text without characters that control a terminal or a line, which no source of it has.
func (m *Maker) printable(most int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return -1
		}
		return r
	}, m.text(most))
}

// labelKey makes the key of a label, which is different for each i.
func (m *Maker) labelKey(i int) string {
	switch m.r.IntN(12) {
	case 0: // the longest: prefix, slash and name
		prefix := strings.TrimSuffix(strings.Repeat("a234567.", maxName/8+1)[:maxName], ".")
		return prefix + "/" + name("n", i*13+7, maxLabel)
	case 1:
		return "App_Name.v1-" + strconv.Itoa(i)
	default:
		return pick(m.r, "app", "app.kubernetes.io/name", "topology.kubernetes.io/zone") + "-" + strconv.Itoa(i)
	}
}

// labels makes labels as Kubernetes allows them: none, few, or a hundred and more.
func (m *Maker) labels() map[string]string {
	n := m.few(4)
	if m.percent(1) {
		n = 100 + m.r.IntN(50)
	}
	if n == 0 {
		return nil
	}
	all := map[string]string{}
	for i := range n {
		all[m.labelKey(i)] = pick(m.r, "", "v", "A.b_c-9", strings.Repeat("v", maxLabel))
	}
	return all
}

// annotations makes annotations with any text; one in 200 has a huge one.
func (m *Maker) annotations() map[string]string {
	n := m.few(5)
	if n == 0 {
		return nil
	}
	all := map[string]string{}
	for i := range n {
		all[m.labelKey(i)] = m.text(1000)
	}
	if m.r.IntN(200) == 0 {
		all["huge"] = strings.Repeat("0123456789abcde\n", huge/16)
	}
	return all
}
