package clientfile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// LeftOut replaces what may be a secret.
const LeftOut = "(left out)"

// Redact cuts user and password out of every URL in a text.
func Redact(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "://")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("://")
		// The URL ends at a space or, in a list of them, where the next begins.
		end := strings.IndexAny(rest, " \t\r\n")
		if next := strings.Index(rest, "://"); end < 0 || next >= 0 && next < end {
			end = next
		}
		if end < 0 {
			end = len(rest)
		}
		text = rest[strings.LastIndexByte(rest[:end], '@')+1:]
	}
}

// withoutUser cuts user and password out of endpoints: etcd's client ignores them there, and
// every message would show them.
func withoutUser(endpoints []string) []string {
	clean := slices.Clone(endpoints)
	for i, ep := range clean {
		switch {
		case strings.HasPrefix(ep, "unix:"), strings.HasPrefix(ep, "unixs:"):
		case strings.Contains(ep, "://"):
			scheme, rest, _ := strings.Cut(Redact(ep), "://")
			clean[i] = strings.ToLower(scheme) + "://" + rest // which is the same in any case (RFC 3986, section 3.1)
		default:
			clean[i] = ep[strings.LastIndexByte(ep, '@')+1:]
		}
	}
	return clean
}

// Shown is what may be shown of a client file.
type Shown struct {
	// Text is the file as YAML, with [LeftOut] for every value that is not known to be harmless.
	Text []byte
	// CertFile, KeyFile and TrustedCAFile are the paths that it names, empty
	// where it names none or something that is no path.
	CertFile, KeyFile, TrustedCAFile string
}

// Show returns what may be shown of a client file; false: it cannot be read as one, and nothing
// of it may be shown.
func Show(content []byte) (Shown, bool) {
	var raw map[string]json.RawMessage
	if yaml.Unmarshal(content, &raw) != nil {
		return Shown{}, false
	}
	shown := make(map[string]any, len(raw))
	options := fileOptions()
	for key, value := range raw {
		shown[key] = LeftOut
		if o, known := options[strings.ToLower(key)]; known && !o.secret && o.fits(value) {
			shown[key] = harmless(o.optionKind, value)
		}
	}
	text, err := yaml.Marshal(shown)
	if err != nil {
		return Shown{}, false
	}
	f := namedFiles(content)
	return Shown{Text: text, CertFile: pathOnly(f.CertFile), KeyFile: pathOnly(f.KeyFile), TrustedCAFile: pathOnly(f.TrustedCAFile)}, true
}

func pathOnly(s string) string {
	if harmlessText(s) != s {
		return ""
	}
	return s
}

// harmless returns a value of its kind without what may be a secret in it.
func harmless(kind optionKind, value json.RawMessage) any {
	if bytes.Equal(value, []byte("null")) {
		return nil
	}
	switch kind {
	case kindString:
		var s string
		if json.Unmarshal(value, &s) == nil {
			return harmlessText(s)
		}
	case kindStrings:
		var list []string
		if json.Unmarshal(value, &list) == nil {
			list = withoutUser(list)
			for i, s := range list {
				list[i] = harmlessText(s)
			}
			return list
		}
	case kindAliases:
		var list []HostAlias
		if json.Unmarshal(value, &list) == nil {
			return list
		}
	default: // numbers, true and false
		return value
	}
	return LeftOut
}

// longestPath is what a path or a URL may have, in bytes.
const longestPath = 4096

// harmlessText lets names, paths and URLs pass: a key that somebody pasted where its path belongs
// has several lines, or is the base64 of such a text, as it stands in a Kubernetes Secret.
func harmlessText(s string) string {
	if len(s) > longestPath || strings.ContainsAny(s, "\r\n") || strings.Contains(s, pemBegins) || strings.Contains(unbase64(s), pemBegins) {
		return LeftOut
	}
	return Redact(s)
}

// pemBegins is what a key or a certificate begins with.
const pemBegins = "-----BEGIN"

// unbase64 decodes as much of a text as is base64 in one of its forms, padded or
// not, in one line or in several that YAML has joined with spaces.
func unbase64(s string) string {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.Join(strings.Fields(s), ""))
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(s)))
	n, _ := base64.RawStdEncoding.Decode(out, []byte(s)) // up to an error it counts
	return string(out[:n])
}
