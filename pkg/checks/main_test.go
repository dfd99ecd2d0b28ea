package checks

import (
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/codes/codestest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// gathered are the codes that the tests of this package lead to.
type gathered struct {
	mu    sync.Mutex
	codes []codes.Code
}

// add takes the findings of a report but those of other packages.
func (g *gathered) add(r *Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := r.Findings
	for _, f := range r.Files {
		all = append(all, f.Findings...)
	}
	for _, f := range all {
		if e, _ := codes.Find(string(f.Code)); e.Owner == codes.Checks {
			g.codes = append(g.codes, f.Code)
		}
	}
}

// TestFindings goes through all situations, which together lead to every code.
func TestFindings(t *testing.T) {
	t.Parallel()
	var all gathered
	t.Run("all", func(t *testing.T) {
		for name, check := range map[string]func(*testing.T, *gathered){
			"client files": checkClientFiles, "certificates": checkCertificates, "keys": checkKeys, "entries": checkEntries,
			"forbidden": checkForbidden, "servers": checkServers, "the running agent": checkDiff,
			"the claim policy file": checkPolicy,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				check(t, &all)
			})
		}
	})
	codestest.Reached(t, codes.Checks, all.codes...)
}
