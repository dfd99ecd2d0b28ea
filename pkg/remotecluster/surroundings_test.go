package remotecluster

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAnEtcdWithoutTheConfiguration: the etcd is empty, or has configurations of other clusters, or copies, to which
// ours may be added. The status shows which, until our configuration exists.
func TestAnEtcdWithoutTheConfiguration(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(p *Params) { p.Timings.LookAround = 10 * time.Millisecond })
	b.run()
	says := func(what string, code codes.Code) {
		t.Helper()
		b.eventually(what, func(st Status) bool { return st.Connected && st.Code == code })
	}
	says("an empty etcd", codes.EtcdEmpty)
	b.mem.Set(wire.HeartbeatKey, "now")
	says("a cluster without any configuration", codes.NoConfiguration)
	b.mem.Set(wire.ClusterConfigKey("other"), string(wire.ClusterConfig{ID: 7}.Encode()))
	says("the etcd of another cluster", codes.EtcdOfAnother)
	b.mem.Set(wire.ClusterConfigKey("third"), string(wire.ClusterConfig{ID: 8, Capabilities: wire.Capabilities{Cached: true}}.Encode()))
	says("an etcd with copies", codes.NoConfiguration)
	b.mem.Set(wire.ClusterConfigKey(testCluster), "no JSON")
	b.mem.Unset(wire.ClusterConfigKey("third"))
	says("a configuration that cannot be read", codes.NoConfiguration)
	b.configure(plain(2))
	b.inState(Ready)
	b.mem.Unset(wire.ClusterConfigKey(testCluster))
	says("the etcd of another cluster, while its entries are kept", codes.EtcdOfAnother)
	b.configure(plain(2))
	b.inState(Ready)
}
