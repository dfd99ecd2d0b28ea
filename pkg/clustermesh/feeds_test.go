package clustermesh

import (
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAPolicyIsAppliedToWhatIsThere: entries that a new policy does not grant are withdrawn and counted, and are used
// again after it grants them. A cluster with another ID than its pin is withdrawn completely.
func TestAPolicyIsAppliedToWhatIsThere(t *testing.T) {
	t.Parallel()
	granted := new(claims.Current)
	w := newWorld(t, func(p *Params) { p.Granted = granted })
	w.view.Granted = granted // before a cluster is added
	a := w.remote("a", 1)
	a.join()
	a.converges()
	set := func(file string) {
		t.Helper()
		p, err := claims.Parse([]byte(file))
		must(t, err)
		granted.Set(p)
	}
	refused := func(r wire.Resource) (n int) {
		st, _ := w.status("a")
		return st.Families[r].Rejections[wire.ReasonPolicy]
	}
	set("clusters: {a: {namespaces: [elsewhere]}}")
	w.until("what is in other namespaces is refused", func() bool {
		return refused(wire.Services) == 120 && refused(wire.IPs) == 120 && refused(wire.Nodes) == 0 &&
			w.view.IPs.LookupWinner(a.addr(1)) == nil
	})
	set("clusters: {a: {id: 1, namespaces: [n*]}}")
	w.until("it is granted", func() bool { return refused(wire.Services) == 0 })
	a.converges()
	set("clusters: {a: {id: 2}}")
	w.until("the cluster has another ID than the file says", func() bool {
		st, _ := w.status("a")
		return st.State == remotecluster.Failed && st.Code == codes.ClusterIDNotPinned && w.view.IPs.Len() == 0
	})
	set("default: allow")
	a.converges()
	if st, _ := w.status("a"); !strings.Contains(st.LastLoss, "the claim policy file has changed") {
		t.Errorf("why the session was ended: %q", st.LastLoss)
	}
}
