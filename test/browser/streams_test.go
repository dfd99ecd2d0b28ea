package browser

import "testing"

// TestOneStreamForAView: in addition to the stream of the whole page, a view has one stream for all its parts.
func TestOneStreamForAView(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	p := w.open()
	address := firstPod(w, "tokyo").String()
	for fragment, heading := range map[string]string{
		"#/services/default/web":    "Service default/web",
		"#/addresses/" + address:    "Owner of " + address,
		"#/addresses?labels=app":    "Addresses",
		"#/addresses?cluster=tokyo": "Addresses",
	} {
		w.forget()
		p.visit(fragment, heading)
		p.until("its contents", `document.querySelectorAll("main table tr").length > 1`)
		eval[bool](p, `globalThis.begun = performance.now(), true`)
		p.until("three seconds", `performance.now() > begun + 3000`)
		if asked := w.requests("/v1/watch"); len(asked) != 2 {
			t.Errorf("%s opened %d streams: %v", fragment, len(asked), asked)
		}
	}
}
