package clustermesh

import (
	"fmt"
	"iter"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// backendJudge judges service backends by the rules for claims on addresses.
type backendJudge struct{ ips *ipcache.Cache }

// Breaches implements [services.Judge].
func (j backendJudge) Breaches(addrs iter.Seq[netip.Addr], visit func(netip.Addr, uint8, fmt.Stringer)) {
	j.ips.Breaches(addrs, func(a netip.Addr, b ipcache.Breach) { visit(a, uint8(b.Rule), b) })
}

// Enforces implements [services.Judge].
func (j backendJudge) Enforces() bool { return j.ips.Enforces() }

// judgeBackends judges the backends of all services again when the own networks have
// changed, which they seldom do.
func (v *View) judgeBackends() {
	v.judging.Lock()
	defer v.judging.Unlock()
	if now := v.IPs.OwnRevision(); now != v.judged {
		v.judged = now
		v.Services.JudgeAgain()
	}
}
