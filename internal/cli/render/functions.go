package render

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
)

// upstreamName returns the name of an nginx upstream or a HAProxy backend for a service, or for one port of it; it
// has the arguments of backends. The name is unique: hyphens in the namespace are doubled, and names in Kubernetes
// neither begin nor end with a hyphen, so the first single hyphen is the end of the namespace. The names contain no
// dots.
func upstreamName(service string, port ...any) (string, error) {
	namespace, name, _ := strings.Cut(service, "/")
	if !isLabel(namespace) || !isLabel(name) || len(port) > 1 {
		return "", usagef("upstreamName %q: want NAMESPACE/NAME, as Kubernetes has them, and at most one port", service)
	}
	full := strings.ReplaceAll(namespace, "-", "--") + "-" + name
	for _, p := range port {
		text := fmt.Sprint(p)
		if !isLabel(text) {
			return "", usagef("upstreamName %q %q: want the name or the number of a port", service, text)
		}
		full += "." + text
	}
	return full, nil
}

// hostsName returns the name of a node in a file such as /etc/hosts. The cluster, which has no dots, is the last
// part: so the name of a node is never that of a node in another cluster, or of a host outside the cluster.
func hostsName(node, cluster string) (string, error) {
	if !isHost(node) || !isCluster(cluster) {
		return "", usagef("hostsName %q %q: want the name of a node and of its cluster", node, cluster)
	}
	return node + "." + cluster, nil
}

const mostNginx = 2048 // bytes of a quoted text: nginx refuses a parameter that does not fit in its buffer of 4096

// nginxQuote returns a text as one parameter of nginx. nginx has no escape for the start of a variable.
func nginxQuote(text string) (string, error) {
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	if len(quoted) > mostNginx {
		return "", fmt.Errorf("nginxQuote: a text of %d bytes is too long for nginx: cut it in the template (trunc)", len(text))
	}
	return quoted, quotable("nginxQuote", text, "$", "nginx reads it as a variable")
}

// haproxyQuote returns a text as one argument of HAProxy. In some arguments HAProxy evaluates a percent sign after it
// has removed the quotes.
func haproxyQuote(text string) (string, error) {
	return `'` + strings.ReplaceAll(text, `'`, `'\''`) + `'`, quotable("haproxyQuote", text, "%", "HAProxy reads it as a variable")
}

// quotable fails for a text that cannot be quoted.
func quotable(function, text, refused, why string) error {
	short := text[:min(len(text), mostShown)]
	if strings.Contains(text, refused) {
		return fmt.Errorf("%s %q: the text has a %q, and %s: leave it out in the template (replace, regexMatch)", function, short, refused, why)
	}
	if at, what := firstControl([]byte(text), ""); at >= 0 {
		return fmt.Errorf("%s %q: the text has the character %s: leave it out in the template (replace, regexMatch)", function, short, what)
	}
	return nil
}

// firstControl returns the position of the first character that is not allowed: a control character outside allowed,
// or invalid UTF-8. what describes it. Without any, the position is negative.
func firstControl(text []byte, allowed string) (at int, what string) {
	for at = 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			return at, fmt.Sprintf("0x%02X, which is not UTF-8", text[at])
		case safetext.IsControl(r) && !strings.ContainsRune(allowed, r):
			return at, fmt.Sprintf("%U", r)
		}
		at += size
	}
	return -1, ""
}

// checkOutput fails for a control character in the result of a template.
func checkOutput(text []byte) error {
	at, what := firstControl(text, "\n\t")
	if at < 0 {
		return nil
	}
	return fmt.Errorf("line %d of the result has the control character %s: remove it from the template, or allow it with --allow-control-characters",
		1+bytes.Count(text[:at], []byte("\n")), what)
}
