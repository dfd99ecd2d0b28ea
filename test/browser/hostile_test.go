package browser

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// hostile are texts that would be markup, scripts, other addresses, or that hide or turn what is around them.
func hostile() []string {
	return []string{
		`<img src=x onerror="globalThis.hacked=1">`, `"><script>globalThis.hacked=1</script>`, `javascript:globalThis.hacked=1`, `{{constructor.constructor('hacked=1')()}}`,
		"\u202egnirts\u202c \u2066x\u2069 \u200b\u200e", "line\nline\x00\x1b[2J\u2028", "__proto__", strings.Repeat("long", 3000), strings.Repeat("🙂", 500), "%2e%2e#?&=",
	}
}

// TestHostileNames: whatever other clusters call things is text, that has an end and turns nothing around.
func TestHostileNames(t *testing.T) {
	w := newWorld(t, three()...)
	r := w.cluster("paris")
	labels := map[string]string{}
	for i, text := range hostile() {
		labels[text] = text
		s := wire.Service{
			Cluster: "paris", ClusterID: 2, Namespace: "evil" + strings.ReplaceAll(text, "/", "|"), Name: strings.ReplaceAll(text, "/", "|"), Shared: true,
			Frontends: map[string]wire.Ports{}, Labels: labels,
			Backends: map[string]wire.Ports{"10.2.9.9": {text: {Protocol: text, Port: uint16(i)}}}, Hostnames: map[string]string{"10.2.9.9": text}, Zones: map[string]wire.Zone{"10.2.9.9": {Zone: text}},
		}
		if len(s.Key()) < 1500 { // a key has an end
			must(t, r.Put(t.Context(), s.Key(), s.Encode()))
		}
		ip := wire.IPIdentityPair{IP: net.IPv4(10, 2, 200, byte(i+1)), HostIP: net.IPv4(192, 168, 2, 1), Identity: 131073, Namespace: text, Pod: text}
		must(t, r.Put(t.Context(), ip.Key(), ip.Encode()))
	}
	n := wire.Node{
		Name: "evil", Cluster: "paris", ClusterID: 2, Source: wire.SourceCustomResource.String(), Labels: labels, Annotations: labels, BootID: hostile()[0], WireguardPubKey: hostile()[1],
		IPAddresses: []wire.NodeAddress{{Type: "InternalIP", IP: net.IPv4(192, 168, 77, 7)}},
	}
	must(t, r.Put(t.Context(), n.Key(), n.Encode()))
	p := w.open()
	first := "evil" + hostile()[0]
	for _, v := range []view{
		{"services", "#/services?contains=evil", "Services", []string{hostile()[0]}},
		{"service", "#/services/" + url.PathEscape(first) + "/" + url.PathEscape(hostile()[0]), "Service " + first + "/" + hostile()[0], []string{"receives connections"}},
		{"addresses", "#/addresses?prefix=10.2.200.0/24", "Addresses", []string{hostile()[1], "10.2.200.10"}},
		{"address", "#/addresses/10.2.200.5", "Owner of 10.2.200.5", []string{`\u{202e}gnirts`}},
		{"address with controls", "#/addresses/10.2.200.6", "Owner of 10.2.200.6", []string{`line\u{a}line\u{0}\u{1b}[2J\u{2028}`}},
		{"long address", "#/addresses/10.2.200.8", "Owner of 10.2.200.8", []string{"longlong"}},
		{"node", "#/nodes/paris/evil", "Node paris/evil", []string{hostile()[0], hostile()[1], "characters in all)"}},
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
	p.untilText(".hits", hostile()[0])
	if p.hurt() {
		t.Error("search: a name was more than text")
	}
}

// hurt tells whether something ran, became an element, leads out of the page, or turns or hides text.
func (p *page) hurt() bool {
	return eval[bool](p, `"hacked" in globalThis || document.querySelectorAll("main img, main script, main iframe").length > 0 || document.querySelectorAll("script").length !== 1
		|| [...document.querySelectorAll("a")].some((a) => new URL(a.href).origin !== location.origin)
		|| /[\u200b-\u200f\u2028-\u202e\u2066-\u2069\u0000-\u0008\u001b]/.test(document.body.textContent)`)
}
