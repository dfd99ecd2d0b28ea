package clientfile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// LeftOut replaces text that may be a secret.
const LeftOut = "(left out)"

// Redact removes user and password from every URL in a text.
func Redact(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "://")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("://")
		// The URL ends at white space or, in a list of URLs, where the next one begins.
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

// withoutUser removes user and password from endpoints: etcd's client ignores them there, and
// every message would show them.
func withoutUser(endpoints []string) []string {
	clean := slices.Clone(endpoints)
	for i, ep := range clean {
		switch {
		case strings.HasPrefix(ep, "unix:"), strings.HasPrefix(ep, "unixs:"):
		case strings.Contains(ep, "://"):
			scheme, rest, _ := strings.Cut(Redact(ep), "://")
			clean[i] = strings.ToLower(scheme) + "://" + rest // a scheme ignores case (RFC 3986, section 3.1)
		default:
			clean[i] = ep[strings.LastIndexByte(ep, '@')+1:]
		}
	}
	return clean
}

// Shown has the parts of a client file that may be shown.
type Shown struct {
	// Text is the file as YAML, with [LeftOut] for every value that is not known to be harmless.
	Text []byte
	// CertFile, KeyFile and TrustedCAFile are the paths that the client file names, empty
	// for a missing option or a value that is not a path.
	CertFile, KeyFile, TrustedCAFile string
}

// Show returns the parts of a client file that may be shown; false: the file cannot be read as a
// client file, and nothing of it may be shown.
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

// harmless returns a value of this kind without its parts that may be secret.
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

// longestPath is the maximum length of a path or a URL, in bytes.
const longestPath = 4096

// harmlessText returns names, paths and URLs, and [LeftOut] for a key that a user pasted instead of its
// path: a key has several lines, or is the base64 of a PEM text, as in a Kubernetes Secret.
func harmlessText(s string) string {
	if len(s) > longestPath || strings.ContainsAny(s, "\r\n") || strings.Contains(s, pemBegins) || strings.Contains(unbase64(s), pemBegins) {
		return LeftOut
	}
	return Redact(s)
}

// pemBegins is the beginning of a key or a certificate in PEM.
const pemBegins = "-----BEGIN"

// unbase64 decodes the beginning of a text that is valid base64, in any of its forms: padded or not, in
// one line or in several lines that YAML has joined with spaces.
func unbase64(s string) string {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.Join(strings.Fields(s), ""))
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(s)))
	n, _ := base64.RawStdEncoding.Decode(out, []byte(s)) // the bytes before an error count
	return string(out[:n])
}
