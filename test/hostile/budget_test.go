package hostile

import (
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestBudgets: a server that exceeds its budget gets the code for that, and leaves no more entries than the budget.
func TestBudgets(t *testing.T) {
	waittest.Long(t)
	const keys = 300
	w := newWorld(t, func(p *clustermesh.Params) {
		b := budget.Default()
		for r, share := range b.Resources {
			share.Keys = keys
			b.Resources[r] = share
		}
		b.List, b.Events, b.Value = 300*time.Millisecond, 200, 64<<10
		p.Budgets = budget.Budgets{Budget: b}
	})
	slow := []codes.Code{codes.ListTooLong}
	for _, c := range []struct {
		rule *rule
		want []codes.Code
	}{
		{endless(0), slow},
		{endless(600 * time.Millisecond), slow},
		{keyFlood(), slow},
		{eventFlood(100), []codes.Code{codes.EventsPaced}},
		{eventFlood(0), []codes.Code{codes.OverBudget, codes.EventsPaced}},
	} {
		t.Run(c.rule.name, func(t *testing.T) {
			h, s := w.hostileCluster(t)
			s.breaks(c.rule)
			w.join(h, s.endpoint())
			w.shows(t, h, c.want)
			st, _ := w.status(h.name)
			for r, is := range st.Families {
				if is.Count > keys {
					t.Errorf("%d %s are kept, there may be %d", is.Count, r, keys)
				}
			}
			if n := len(w.shown(h.name)); n > 4*keys {
				t.Errorf("%d objects are in the view, of four resources there may be %d", n, 4*keys)
			}
			w.gone(t, h)
		})
	}
	t.Run("more keys than there may be, of a server that breaks no rule", func(t *testing.T) {
		h, s := w.hostileCluster(t)
		for n := range uint32(2 * keys) {
			kv := address(n, 0)
			s.put(map[string][]byte{string(kv.Key): kv.Value})
		}
		w.join(h, s.endpoint())
		w.shows(t, h, []codes.Code{codes.OverBudget})
		if text, want := w.codesOf(h)[codes.OverBudget], h.name+".ips.keys=300"; !strings.Contains(text, want) {
			t.Errorf("%q does not name %s", text, want)
		}
		if n := len(w.shown(h.name)); n > 4*keys {
			t.Errorf("%d objects are in the view, of four resources there may be %d", n, 4*keys)
		}
		w.gone(t, h)
	})
	w.sentinel(t, 2)
}
