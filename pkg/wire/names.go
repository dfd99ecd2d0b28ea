package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The rules for names and texts that a remote writes. A text that breaks its rule is rejected with
// [ReasonName]. So code that shows, serves or writes a name later gets no text that a Kubernetes object cannot
// have. The rules are those of Kubernetes for the object that the text comes from. Where a text comes from
// elsewhere, its rule is wider; the table gives the reason.
//
//	namespace, service, port                    DNS label (RFC 1123)
//	endpoint slice, pod, node of an endpoint    DNS subdomain
//	node                                        subdomain in any letter case, with underscores: the host name
//	                                            of a machine that is in no Kubernetes
//	key and value of a label, zone in a hint    qualified name, label value
//	zone, host name                             label value, DNS label; another text is left out
//	protocol, address type, address family      up to 32 letters, digits and hyphens
//	application protocol                        qualified name
//	labels of an identity and of an export      printable: container runtimes have labels of their own, and the
//	                                            API server does not check those of an export
//	annotations                                 UTF-8, up to 256 KiB together

// Lengths in bytes, those of Kubernetes.
const (
	maxLabelName   = 63
	maxSubdomain   = 253
	maxToken       = 32
	maxPrintable   = 1024
	maxKey         = 400 // of a label of an identity or an export; the longest key, of a namespace's label in an identity, has 348
	maxSource      = 64
	maxAnnotations = 256 << 10 // keys and values of one object together
)

// Classes of characters, as bits.
const (
	classLower = 1 << iota // a lower-case letter or a digit
	classUpper
	classDash
	classDot
	classUnderscore
	classNone // in no name

	classLabel   = classLower | classDash
	classDomain  = classLabel | classDot
	classValue   = classLower | classUpper | classDash | classDot | classUnderscore
	classLetters = classLower | classUpper
)

// classes has the class of each byte. Names are checked for each address that is read: a table with an element
// for every byte takes a fifth of the time of comparisons.
const classes = none + none + // control characters
	"\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x04\x08\x20" + // space to slash
	"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x20\x20\x20\x20\x20\x20" + // 0 to ?
	"\x20\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02" + // @ to O
	"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x20\x20\x20\x20\x10" + // P to _
	"\x20\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01" + // ` to o
	"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x20\x20\x20\x20\x20" + // p to DEL
	none + none + none + none + none + none + none + none // 0x80 and above

const none = "\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20"

// isMadeOf reports whether a text is not empty, is short enough, has only allowed classes, and begins and ends with a
// letter or a digit.
func isMadeOf(s string, most int, allowed uint8) bool {
	if s == "" || len(s) > most {
		return false
	}
	has := uint8(0)
	for i := range len(s) {
		has |= classes[s[i]]
	}
	return has&^allowed == 0 && (classes[s[0]]|classes[s[len(s)-1]])&^classLetters == 0
}

// isLabel reports whether a text is a DNS label, the name of a namespace, a service or a port.
func isLabel(s string) bool { return isMadeOf(s, maxLabelName, classLabel) }

// isSubdomain reports whether a text is a DNS subdomain, the name of most objects.
func isSubdomain(s string) bool { return isMadeOf(s, maxSubdomain, classDomain) && isWithoutGaps(s) }

// isWithoutGaps reports whether each part between dots begins and ends with a letter or a digit. The text must
// have only characters of names.
func isWithoutGaps(s string) bool {
	if strings.IndexByte(s, '.') < 0 { // the usual case
		return true
	}
	return !strings.Contains(s, "..") && !strings.Contains(s, ".-") && !strings.Contains(s, "-.")
}

// isNode reports whether a text can be the name of a node.
func isNode(s string) bool {
	return isMadeOf(s, maxSubdomain, classValue) && !strings.Contains(s, "..")
}

// isLabelValue reports whether a text can be the value of a label.
func isLabelValue(s string) bool { return s == "" || isMadeOf(s, maxLabelName, classValue) }

// isQualified reports whether a text can be the key of a label: [PREFIX/]NAME. The prefix of an annotation may have
// capital letters.
func isQualified(s string) bool {
	prefix, name, hasPrefix := strings.Cut(s, "/")
	if !hasPrefix {
		return isMadeOf(s, maxLabelName, classValue)
	}
	return isMadeOf(prefix, maxSubdomain, classDomain|classUpper) && isWithoutGaps(prefix) && isMadeOf(name, maxLabelName, classValue)
}

// isToken reports whether a text can be a word of a fixed set, including words that are not known yet.
func isToken(s string) bool { return s == "" || isMadeOf(s, maxToken, classLetters|classDash) }

// isPrintable reports whether a text is short, and UTF-8 without characters that control a terminal, a line or the
// direction of text.
func isPrintable(s string) bool {
	if len(s) > maxPrintable {
		return false
	}
	for i := range len(s) {
		if s[i]-' ' >= 0x7f-' ' { // rare
			return utf8.ValidString(s) && strings.IndexFunc(s, isControl) < 0
		}
	}
	return true
}

func isControl(r rune) bool {
	switch {
	case r < ' ', r == '\u2028', r == '\u2029', r == '\ufeff', r == '\ufffe', r == '\uffff':
		return true
	case r < 0x7f:
		return false
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r)
}

// zone checks a zone. The API server does not check it, but it checks the label of the node from which the zone
// normally comes.
func (c *checks) zone(s *string) (changed bool) { return c.detail("the zone", s, isLabelValue) }

// host checks the host name of a backend.
func (c *checks) host(s *string) (changed bool) { return c.detail("the host name", s, isLabel) }

// detail empties a text that breaks its rule, and reports true then. The entry is not refused for this, unless
// the text is not printable.
func (c *checks) detail(what string, s *string, is func(string) bool) (changed bool) {
	if s == nil || *s == "" || is(*s) {
		return false
	}
	c.name(what, *s, isPrintable, rulePrintable)
	*s = ""
	return true
}

// checks are the checks of one entry. The first failure is kept.
type checks struct{ err error }

// name checks a text by a rule; what and rule are for the error.
func (c *checks) name(what, s string, is func(string) bool, rule string) {
	if c.err == nil && !is(s) {
		c.err = notA(what, s, rule)
	}
}

func notA(what, s, rule string) error {
	return reject(ReasonName, "%s %.80q is not %s", what, s, rule)
}

// Rules, as errors name them.
const (
	ruleLabel      = "a DNS label (lower-case letters, digits and inner hyphens, at most 63)"
	ruleSubdomain  = "a DNS subdomain (lower-case letters, digits, inner hyphens and dots, at most 253)"
	ruleNode       = "a node name (letters, digits, and inner hyphens, dots and underscores, at most 253)"
	ruleLabelValue = "a label value (letters, digits, and inner hyphens, dots and underscores, at most 63)"
	ruleQualified  = "a qualified name ([PREFIX/]NAME)"
	ruleToken      = "a word (letters, digits and inner hyphens, at most 32)"
	rulePrintable  = "printable UTF-8 of at most 1024 bytes"
	ruleText       = "UTF-8"
)

func (c *checks) label(what, s string)     { c.name(what, s, isLabel, ruleLabel) }
func (c *checks) token(what, s string)     { c.name(what, s, isToken, ruleToken) }
func (c *checks) printable(what, s string) { c.name(what, s, isPrintable, rulePrintable) }

// key checks a printable text that is used as a key. It must be shorter than the longest key that readers of
// YAML accept (1024, with escapes).
func (c *checks) key(what, s string, most int) {
	c.printable(what, s)
	if c.err == nil && len(s) > most {
		c.err = atMost(most, len(s), "bytes in "+what)
	}
}

// optional checks a text that may be empty.
func (c *checks) optional(what, s string, is func(string) bool, rule string) {
	if s != "" {
		c.name(what, s, is, rule)
	}
}

// labels checks the labels of an object, or a selector. Of several failures it reports that of the least key,
// so that the same value always gives the same error.
func (c *checks) labels(what string, m map[string]string) {
	c.least(m, func(one *checks, key, value string) {
		if !isQualified(key) || !isLabelValue(value) { // the texts below cost memory and are only for errors
			one.name("the key of a "+what, key, isQualified, ruleQualified)
			one.name("the value of a "+what, value, isLabelValue, ruleLabelValue)
		}
	})
}

// texts checks a map whose texts have no rules in Kubernetes.
func (c *checks) texts(what string, m map[string]string) {
	c.least(m, func(one *checks, key, value string) {
		one.key("the key of a "+what, key, maxKey)
		one.printable("the value of a "+what, value)
	})
}

// annotations checks annotations, whose values may be any text.
func (c *checks) annotations(m map[string]string) {
	size := 0
	c.least(m, func(one *checks, key, value string) {
		size += len(key) + len(value)
		one.name("the key of an annotation", key, isQualified, ruleQualified)
		one.name("the value of the annotation "+key, value, utf8.ValidString, ruleText)
	})
	if c.err == nil {
		c.err = atMost(maxAnnotations, size, "bytes of annotations")
	}
}

func (c *checks) least(m map[string]string, check func(one *checks, key, value string)) {
	if c.err != nil {
		return
	}
	var bad string
	for key, value := range m {
		if c.err != nil && key >= bad {
			continue // another error would cost memory
		}
		var one checks
		if check(&one, key, value); one.err != nil {
			bad, c.err = key, one.err
		}
	}
}
