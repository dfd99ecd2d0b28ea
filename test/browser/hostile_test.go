package browser

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// hostile are texts that could act as markup, scripts or other addresses, or hide or reverse the text around them.
func hostile() []string {
	return []string{
		`<img src=x onerror="globalThis.hacked=1">`, `"><script>globalThis.hacked=1</script>`, `javascript:globalThis.hacked=1`, `{{constructor.constructor('hacked=1')()}}`,
		"\u202egnirts\u202c \u2066x\u2069 \u200b\u200e", "line\nline\x00\x1b[2J\u2028", "__proto__", strings.Repeat("long", 3000), strings.Repeat("🙂", 500), "%2e%2e#?&=",
	}
}

// TestHostileNames: the page shows free texts of other clusters as plain text, cut to a maximum length, that reverses no
// text around it. Names that no object of Kubernetes can have are refused; the page shows the refusals as text.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	r := w.cluster("paris")
	texts := map[string]string{}
	for i, text := range hostile() {
		texts[fmt.Sprint("text-", i)] = text
		s := wire.Service{
			Cluster: "paris", ClusterID: 2, Namespace: "evil" + strings.ReplaceAll(text, "/", "|"), Name: strings.ReplaceAll(text, "/", "|"), Shared: true,
			Frontends: map[string]wire.Ports{}, Backends: map[string]wire.Ports{"10.2.9.9": {text: {Protocol: text, Port: uint16(i)}}},
		}
		if len(s.Key()) < 1000 { // the length of a key is limited
			must(t, r.Put(t.Context(), s.Key(), s.Encode()))
		}
	}
	n := wire.Node{
		Name: "evil", Cluster: "paris", ClusterID: 2, Source: wire.SourceCustomResource.String(), Annotations: texts, BootID: hostile()[0], WireguardPubKey: hostile()[1],
		IPAddresses: []wire.NodeAddress{{Type: "InternalIP", IP: net.IPv4(192, 168, 77, 7)}},
	}
	must(t, r.Put(t.Context(), n.Key(), n.Encode()))
	p := w.open()
	for _, v := range []view{
		{"cluster", "#/clusters/paris", "Cluster paris", []string{"is not a DNS label"}},
		{"node", "#/nodes/paris/evil", "Node paris/evil", []string{hostile()[0], hostile()[1], `\u{202e}gnirts`, `line\u{a}line\u{0}\u{1b}[2J\u{2028}`, "characters in all)"}},
		{"hostile route", "#/services/" + url.PathEscape(`<img src=x onerror="globalThis.hacked=1">`) + "/x", `Service <img src=x onerror="globalThis.hacked=1">/x`, []string{"no cluster"}},
		{"hostile filter", "#/codes?contains=" + url.QueryEscape(hostile()[0]), "Codes", []string{"0 of"}},
	} {
		p.visit(v.fragment, v.heading)
		for _, text := range v.texts {
			p.until(text+" in "+v.name, `document.querySelector("main").textContent.includes(`+quoted(text)+`)`)
		}
		if p.hurt() {
			t.Errorf("%s: a name was more than text", v.name)
		}
		if wide := eval[int](p, `document.scrollingElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s is %d wider than the window", v.name, wide)
		}
		p.audit("hostile " + v.name)
		if v.name == "node" {
			p.picture("hostile")
		}
	}
	p.search("evil")
	p.untilText(".hits", "evil")
	if p.hurt() {
		t.Error("search: a name was more than text")
	}
}

// hurt reports whether a script ran, a text became an element, a link leads out of the page, or text is reversed or
// hidden.
func (p *page) hurt() bool {
	return eval[bool](p, `"hacked" in globalThis || document.querySelectorAll("main img, main script, main iframe").length > 0 || document.querySelectorAll("script").length !== 1
		|| [...document.querySelectorAll("a")].some((a) => new URL(a.href).origin !== location.origin)
		|| /[\u200b-\u200f\u2028-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(document.body.textContent)`)
}
