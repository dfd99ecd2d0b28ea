package monitoring

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

// listenerAlerts fire while the certificates of an agent's own listeners are about to expire, and its files are
// invalid.
func listenerAlerts() []string {
	return []string{"MeshListenerCertificateEnds", "MeshListenerCertificateEndsSoon", "MeshListenerFilesUnusable"}
}

// TestListeners: a certificate for 20 days is signed by one for 2 days, and then its key file is overwritten.
func TestListeners(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	dir := t.TempDir()
	ca, err := pki.NewCA("mesh")
	must(t, err)
	write := func(left ...time.Duration) (cert, key string) {
		var all pki.Pair
		for i, one := range left {
			pair, err := ca.Server([]string{"127.0.0.1"}, pki.Valid(time.Now().Add(-time.Hour), time.Now().Add(one)))
			must(t, err)
			if all.Cert = append(all.Cert, pair.Cert...); i == 0 {
				all.Key = pair.Key
			}
		}
		cert, key, err := all.Write(dir, "server")
		must(t, err)
		return cert, key
	}
	cert, key := write(400 * 24 * time.Hour)
	mesh, address := filepath.Join(dir, "mesh"), programtest.Reserve(t)
	must(t, os.Mkdir(mesh, 0o700))
	agenttest.StartAgent(t, mesh, "--listen", address, "--tls-cert-file", cert, "--tls-key-file", key)
	p := startPrometheus(t, target{"mesh-agent", secure + address})
	p.scraped(1)
	write(20*24*time.Hour, 2*24*time.Hour)
	p.counts(`mesh_agent_listener_notice{code="MESH-7013"}`) // the agent has read them
	must(t, os.WriteFile(key, []byte("half of"), 0o600))
	p.fire(listenerAlerts()...)
	write(400 * 24 * time.Hour)
	p.resolve()
}
