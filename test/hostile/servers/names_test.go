package servers

import (
	"strings"
	"unicode/utf8"
)

// marker is a part of each hostile text, so that it can be found in the agent's output.
const marker = "ZZEVIL"

// hostileText is a text for a place where a name is expected, with a description.
type hostileText struct{ what, text string }

// hostileTexts are texts that break the syntax around them.
func hostileTexts() []hostileText {
	return []hostileText{
		{"no UTF-8", "a\xffb" + marker},
		{"half a rune", marker + "\xe2\x82"},
		{"surrogate", marker + "\xed\xa0\x80"},
		{"NUL", "a\x00" + marker},
		{"line break", "a\n" + marker + " b"},
		{"carriage return", "a\r" + marker},
		{"line of /etc/hosts", "x\n6.6.6.6 " + marker + ".example\n#"},
		{"nginx block", "x {\n server 127.0.0.1:1; }\nserver { listen 127.0.0.1:16999; root /; } #" + marker},
		{"nginx statement", "x; include /etc/passwd; #" + marker},
		{"haproxy section", "x\nlisten " + marker + "\n    bind 127.0.0.1:16998\n#"},
		{"template", "{{ env \"HOME\" }}" + marker},
		{"quotes", `a"'` + "`" + marker},
		{"backslash", `a\n\` + marker},
		{"YAML", "a: {b: [" + marker + ", &x *x !!y |"},
		{"JSON", `","` + marker + `":"`},
		{"HTML", "<script>" + marker + "</script>"},
		{"shell", "$(touch /tmp/" + marker + ")"},
		{"escape sequences", "\x1b[2J\x1b]0;" + marker + "\x07"},
		{"C1 control", marker + "\u009b31m"},
		{"DEL", marker + "\x7f"},
		{"right to left", marker + "\u202egnp.exe"},
		{"isolate", "\u2066" + marker},
		{"zero width", marker + "\u200b\ufeff"},
		{"line separator", marker + "\u2028x\u2029"},
		{"look-alike", "с" + marker + "аrt"},
		{"combining", marker + strings.Repeat("\u0301", 50)},
		{"dot", "."},
		{"dots", ".."},
		{"path", "../../../../tmp/" + marker},
		{"absolute path", "/" + marker},
		{"slashes", "a//" + marker},
		{"dotted", "a.b." + marker + "."},
		{"leading dot", "." + marker},
		{"underscore", "_" + marker + "._tcp"},
		{"star", "*"},
		{"colon", "a:" + marker + ":1"},
		{"at", "@" + marker},
		{"hash", "#" + marker},
		{"percent", "%s%n%" + marker},
		{"comma", "a," + marker + ",b"},
		{"equals", "a=" + marker},
		{"space", " " + marker + " "},
		{"tab", "a\t" + marker},
		{"upper case", strings.ToUpper("cart" + marker)},
		{"hyphens", "-" + marker + "-"},
		{"label too long", strings.Repeat("a", 64)},
		{"subdomain too long", strings.Repeat("a.", 130) + "b"},
		{"very long", strings.Repeat("l", 4000) + marker},
		{"empty", ""},
		{"number", "0"},
		{"null", "null"},
		{"true", "true"},
		{"localhost", "localhost"},
	}
}

// visible reports whether a text can be shown on a terminal, and cannot change the text around it.
func visible(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		switch {
		case r == '\n':
			return false // between lines; within a text it is shown as another line
		case r < ' ', r == 0x7f, r >= 0x80 && r < 0xa0: // control characters
			return true
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c: // the direction of the text after it
			return true
		case r == 0x2028, r == 0x2029:
			return true
		}
		return false
	})
}
