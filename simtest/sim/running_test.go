package sim

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestEtcdHoldsTheContents(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	for name, change := range map[string]func(*contents.Cluster){
		"default":                func(*contents.Cluster) {},
		"service exports":        func(c *contents.Cluster) { c.ServiceExports = true },
		"few keys on a lease":    func(c *contents.Cluster) { c.KeysPerLease = 7 },
		"more than one lease":    func(c *contents.Cluster) { c.Addresses = 2500 },
		"fewer pods than wanted": func(c *contents.Cluster) { c.Addresses = 7 },
		"nodes only":             func(c *contents.Cluster) { c.Services, c.Identities, c.Addresses = 0, 0, 0 },
		"empty":                  func(c *contents.Cluster) { *c = contents.Cluster{Name: c.Name, ID: c.ID, MaxConnectedClusters: 255} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := contents.Default("cluster7", 7)
			change(&c)
			r := openCluster(t, c, Options{Plain: true})
			l, err := r.Load(testContext(t))
			must(t, err)
			all := checkContents(t, r)
			if len(all) != l.Keys {
				t.Errorf("%d keys in etcd, %d reported", len(all), l.Keys)
			}
			if n, err := r.Churn(testContext(t), 500); err != nil || n < 500 && c.Nodes+c.Identities > 0 {
				t.Errorf("churn made %d changes of 500: %v", n, err)
			}
			checkContents(t, r)
		})
	}
}

func TestConfigurationComesFirstAndCanariesLast(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{Plain: true})
	all := readAll(t, r.Client())
	config := all[wire.ClusterConfigKey("cluster2")]
	const want = `{"id":2,"capabilities":{"syncedCanaries":true,"maxConnectedClusters":255,"serviceExportsEnabled":false,"endpointSlicesExportMode":"services-and-endpointslices"}}`
	if config.value != want {
		t.Errorf("configuration is %s", config.value)
	}
	var last int64
	for key, e := range all {
		if !announced(key) {
			last = max(last, e.created)
			if e.created < config.created {
				t.Errorf("%s was there before the configuration", key)
			}
		}
	}
	for _, resource := range []wire.Resource{wire.Nodes, wire.Services, wire.EndpointSlices, wire.ServiceExports, wire.Identities, wire.IPs} {
		key := wire.SyncedKey("cluster2", resource, false)
		canary, ok := all[key]
		if !ok {
			t.Errorf("%s is missing", key)
		}
		if canary.created <= last {
			t.Errorf("%s was written before the data", key)
		}
		if _, err := time.Parse(time.RFC3339, canary.value); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := time.Parse(time.RFC3339, all[wire.HeartbeatKey].value); err != nil {
		t.Errorf("heartbeat: %v", err)
	}
}

func TestLeasesLastFifteenMinutes(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{})
	for _, id := range r.leases {
		resp, err := r.Client().TimeToLive(testContext(t), id)
		if err != nil || resp.GrantedTTL != 900 {
			t.Errorf("lease %x: %v, %v", int64(id), resp, err)
		}
	}
}

func TestLostLeasesAreReplaced(t *testing.T) {
	t.Parallel()
	c := contents.Default("cluster2", 2)
	c.KeysPerLease = 50
	r := loadCluster(t, c, Options{})
	ctx := testContext(t)
	before := len(readAll(t, r.Client()))
	for _, id := range []clientv3.LeaseID{r.leases[0], r.leases[len(r.leases)-1]} {
		if _, err := r.Client().Revoke(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(readAll(t, r.Client())); got >= before {
		t.Fatalf("no key went with its lease: %d of %d are left", got, before)
	}
	must(t, r.renew(ctx))
	if got := len(checkContents(t, r)); got != before {
		t.Errorf("%d keys, there were %d", got, before)
	}
}

func TestRunWritesHeartbeatsAndChurns(t *testing.T) {
	t.Parallel()
	r := openCluster(t, contents.Default("cluster2", 2), Options{Churn: 500})
	r.etcd.heartbeatEvery, r.etcd.ttl = 20*time.Millisecond, 60*time.Second
	if _, err := r.Load(testContext(t)); err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	watch := r.Client().Watch(ctx, wire.HeartbeatKey)
	stop := running(t, r.etcd.run)
	await(t, watch, 3)
	await(t, r.Client().Watch(ctx, wire.IPs.Prefix("", false), clientv3.WithPrefix()), 50)
	stop()
	checkContents(t, r)
}

func TestRunEndsWithTheServer(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{Churn: 100})
	r.etcd.server.Close()
	if err := r.etcd.run(testContext(t)); err == nil || !strings.Contains(err.Error(), "cluster2") {
		t.Errorf("Run ended with %v", err)
	}
}

func TestLoadEndsWithTheContext(t *testing.T) {
	t.Parallel()
	r := openCluster(t, contents.Default("cluster2", 2), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Load(ctx); err == nil {
		t.Error("Load succeeded without a context")
	}
}

func TestReadersHaveTheRightsOfRemoteClusters(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{})
	ctx, c := testContext(t), asAgent(t, r)
	for _, read := range []struct {
		what, key string
		prefix    bool
		allowed   bool
	}{
		{"nodes", wire.Nodes.Prefix("cluster2", false), true, true},
		{"heartbeat as a prefix", wire.HeartbeatKey, true, true},
		{"own configuration", wire.ClusterConfigKey("cluster2"), false, true},
		{"canaries", wire.SyncedDir("cluster2"), true, true},
		{"all configurations", wire.ClusterConfigPrefix + "/", true, false},
		{"canaries without the slash", strings.TrimSuffix(wire.SyncedDir("cluster2"), "/"), true, false},
		{"cache", wire.CachePrefix + "/", true, false},
	} {
		var opts []clientv3.OpOption
		if read.prefix {
			opts = append(opts, clientv3.WithPrefix())
		}
		resp, err := c.Get(ctx, read.key, opts...)
		if (err == nil) != read.allowed {
			t.Errorf("%s: allowed should be %t: %v", read.what, read.allowed, err)
		}
		if err == nil && resp.Count == 0 {
			t.Errorf("%s: nothing there", read.what)
		}
	}
	if _, err := c.Put(ctx, wire.HeartbeatKey, "x"); err == nil {
		t.Error("a remote cluster may write")
	}
}

func TestServersDemandClientCertificates(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{})
	cfg := r.Client()
	if cfg == nil || !strings.HasPrefix(r.Endpoint(), "https://127.0.0.1:") {
		t.Fatalf("endpoint is %s", r.Endpoint())
	}
	other := loadCluster(t, contents.Default("cluster3", 3), Options{})
	for what, client := range map[string]func() (*clientv3.Client, error){
		"no certificate": func() (*clientv3.Client, error) { return dialWithout(t, r) },
		"another authority's": func() (*clientv3.Client, error) {
			return r.etcd.dialAs(t.Context(), r.Endpoint(), other.etcd.reader)
		},
	} {
		c, err := client()
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := c.Get(ctx, wire.HeartbeatKey); err == nil {
			t.Errorf("%s: the server answered", what)
		}
		cancel()
		_ = c.Close()
	}
}

// dialWithout connects without a client certificate.
func dialWithout(t *testing.T, r *Running) (*clientv3.Client, error) {
	t.Helper()
	return clientv3.New(clientv3.Config{
		Endpoints: []string{r.Endpoint()},
		Logger:    zap.NewNop(),
		TLS:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.etcd.ca.Pool(), ServerName: "localhost"},
	})
}
