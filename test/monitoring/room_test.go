package monitoring

import (
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// roomAlerts fire while a cluster needs more than its limits allow.
func roomAlerts() []string {
	return []string{"MeshIdentitiesRunOut narrow", "MeshMemoryExceeded narrow"}
}

// TestRoom: nearly all identity numbers of a cluster are used, and then there is no memory for more.
func TestRoom(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	c := small("narrow", 1)
	c.MaxConnectedClusters = 511 // with half as many identities
	m, api := meshtest.Run(t, c), programtest.Reserve(t)
	narrow := m.Clusters()[0]
	agenttest.StartAgent(t, m.Dir(), "--listen", api, "--max-connected-clusters", "511", "--remote-memory", "24Mi")
	p := startPrometheus(t, target{"mesh-agent", api})
	p.scraped(1)

	const batch = 50 // maximum for one transaction
	write := func(n int, key func(i int) (key, value string)) {
		t.Helper()
		for first := 0; first < n; first += batch {
			var ops []clientv3.Op
			for i := first; i < min(n, first+batch); i++ {
				key, value := key(i)
				ops = append(ops, clientv3.OpPut(key, value))
			}
			waittest.Try(t, "a write", func() error { // on a slow disk some writes are late
				_, err := narrow.Client().Txn(t.Context()).Then(ops...).Commit()
				return err
			})
		}
	}
	identities := wire.Identities.Prefix("narrow", false)
	write(28_000, func(i int) (string, string) {
		return identities + fmt.Sprint(1<<15+4000+i), fmt.Sprintf("k8s:app=x%d;k8s:io.cilium.k8s.policy.cluster=narrow;", i)
	})
	p.fire(roomAlerts()[0])
	services := wire.Services.Prefix("narrow", false)
	write(3000, func(i int) (string, string) {
		s := wire.Service{
			Cluster: "narrow", ClusterID: 1, Namespace: "shop", Name: fmt.Sprint("s", i), Shared: true,
			Frontends: map[string]wire.Ports{"198.18.0.1": {"http": {Protocol: "TCP", Port: 80}}}, Backends: map[string]wire.Ports{},
		}
		for n := range 60 {
			s.Backends[fmt.Sprint("10.1.1.", n)] = wire.Ports{"http": {Protocol: "TCP", Port: 80}}
		}
		return services + "shop/" + s.Name, string(s.Encode())
	})
	p.fire(roomAlerts()...)
	for _, prefix := range []string{identities, services} {
		waittest.Try(t, "the keys to be deleted", func() error {
			_, err := narrow.Client().Delete(t.Context(), prefix, clientv3.WithPrefix())
			return err
		})
	}
	p.resolve()
}
