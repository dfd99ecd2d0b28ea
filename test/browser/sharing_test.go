package browser

import (
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
)

// TestSharing: the picture shows which clusters share services, with the same numbers as the lists of services, also
// after changes; and which of them are not confirmed.
func TestSharing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	count := func(a, b string) (n int) {
		for _, s := range agenttest.List[api.Service](w.agent, "services") {
			both := map[string]bool{}
			for _, c := range s.Clusters {
				both[c.Cluster] = c.Shared
			}
			if both[a] && both[b] {
				n++
			}
		}
		return n
	}
	before := count("london", "tokyo")
	if before == 0 {
		t.Fatal("london and tokyo share nothing")
	}
	p := w.open()
	p.visit("#/", "Mesh")
	p.untilText(".picture", fmt.Sprintf("london and tokyo %d", before))
	p.until("an arc for each pair", `document.querySelectorAll(".picture .arc").length === 3`)
	eval[bool](p, `document.querySelector(".picture details").open = true`)
	p.audit("the picture with its table")
	w.publish("london", "shop", "fresh", "10.1.9.1")
	w.publish("tokyo", "shop", "fresh", "10.3.9.1")
	p.untilText(".picture", fmt.Sprintf("london and tokyo %d", before+1))
	p.until("the table says it", fmt.Sprintf(`[...document.querySelectorAll(".picture tbody tr")].find((r) => r.textContent.startsWith("london")).lastChild.textContent === "%d"`, before+1))

	p.visit("#/?with=paris", "Mesh")
	p.untilText(".picture", fmt.Sprintf("%d with london", count("paris", "london")))
	must(t, w.cluster("paris").Kill())
	p.untilText(".picture", "as far as it was read: 20 services")
	p.untilText(".picture", "Not confirmed now: paris")
	p.audit("the picture of one that is away")
}
