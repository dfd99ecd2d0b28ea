package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	clientyaml "go.etcd.io/etcd/client/v3/yaml"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// floor measures one run of the floor on the directory.
func (p programs) floor(tb testing.TB, dir string) (r result) {
	tb.Helper()
	return p.timed(tb, "floor", dir)
}

// timed measures one run of this test binary in a role that ends by itself and
// prints what it needed.
func (p programs) timed(tb testing.TB, role, arg string) (r result) {
	tb.Helper()
	cmd := p.as(role, arg)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	err = json.NewDecoder(stdout).Decode(&r)
	r.Seconds = time.Since(start).Seconds()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		tb.Fatalf("the %s: %v", role, err)
	}
	return r
}

// runFloor is that process: it lists what the agent lists, and decodes nothing.
// Clusters of the same endpoints share a client.
func runFloor(ctx context.Context, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "cluster*"))
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0))
	clients := map[string]*clientv3.Client{}
	names := map[string][]string{} // of clusters, by endpoint
	for _, file := range files {
		if filepath.Ext(file) != "" {
			continue // a certificate or a key
		}
		cfg, err := clientyaml.NewConfig(file)
		if err != nil {
			return err
		}
		endpoint := cfg.Endpoints[0]
		names[endpoint] = append(names[endpoint], filepath.Base(file))
		if clients[endpoint] != nil {
			continue
		}
		cfg.Logger = zap.NewNop()
		cfg.DialOptions = []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256 << 20))}
		if clients[endpoint], err = clientv3.New(*cfg); err != nil {
			return err
		}
		defer clients[endpoint].Close()
	}
	counts := make(chan int, 4*len(files))
	for _, endpoint := range slices.Sorted(maps.Keys(names)) {
		for _, name := range names[endpoint] {
			for _, r := range []wire.Resource{wire.Nodes, wire.Services, wire.IPs, wire.Identities} {
				g.Go(func() error {
					n, err := list(ctx, clients[endpoint], r.Prefix(name, len(names[endpoint]) > 1))
					counts <- n
					return err
				})
			}
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	close(counts)
	var r result
	for n := range counts {
		r.Keys += n
	}
	var err1, err2 error
	r.CPU, err1 = cpuSeconds(os.Getpid())
	_, r.Peak, err2 = resident(os.Getpid())
	return errors.Join(err1, err2, json.NewEncoder(os.Stdout).Encode(r))
}

func list(ctx context.Context, c *clientv3.Client, prefix string) (n int, err error) {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	page := int64(etcd.DefaultOptions().PageLimit)
	revision := int64(0)
	for {
		resp, err := c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
		if err != nil {
			return n, fmt.Errorf("list %s: %w", prefix, err)
		}
		n += len(resp.Kvs)
		if !resp.More {
			return n, nil
		}
		revision = resp.Header.Revision
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}
