package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
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

// timed measures one run of this test binary in a role that ends by itself and prints its needs.
func (p programs) timed(tb testing.TB, role, arg string) (r result) {
	tb.Helper()
	cmd := p.as(role, arg)
	stdout, err := cmd.StdoutPipe()
	must(tb, err)
	start := time.Now()
	must(tb, cmd.Start())
	err = json.NewDecoder(stdout).Decode(&r)
	r.Seconds = time.Since(start).Seconds()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		tb.Fatalf("the %s: %v", role, err)
	}
	return r
}

// runFloor is that process: it lists the same keys as the agent, and decodes nothing.
func runFloor(ctx context.Context, dir string) error {
	from, err := remotes(dir)
	if err != nil {
		return err
	}
	users := map[*clientv3.Client]int{}
	for _, c := range from {
		users[c]++
	}
	listed := []wire.Resource{wire.Nodes, wire.Services, wire.IPs, wire.Identities}
	return needed(ctx, from, listed, func(ctx context.Context, c *clientv3.Client, name string, r wire.Resource) (int, error) {
		return list(ctx, c, r.Prefix(name, users[c] > 1), func([]*mvccpb.KeyValue) error { return nil })
	})
}

// remotes opens a client for each client file of a directory, by cluster. Clusters of the
// same endpoint share one.
func remotes(dir string) (map[string]*clientv3.Client, error) {
	files, err := filepath.Glob(filepath.Join(dir, "cluster*"))
	if err != nil {
		return nil, err
	}
	all, shared := map[string]*clientv3.Client{}, map[string]*clientv3.Client{}
	for _, file := range files {
		if filepath.Ext(file) != "" {
			continue // a certificate or a key
		}
		cfg, err := clientyaml.NewConfig(file)
		if err != nil {
			return nil, err
		}
		endpoint := cfg.Endpoints[0]
		if shared[endpoint] == nil {
			cfg.Logger = zap.NewNop()
			cfg.DialOptions = []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256 << 20))}
			if shared[endpoint], err = clientv3.New(*cfg); err != nil {
				return nil, err
			}
		}
		all[filepath.Base(file)] = shared[endpoint]
	}
	return all, nil
}

// needed handles each resource of each cluster, with as many at a time as the agent lists, and prints the number of
// keys, and the needs of this process.
func needed(ctx context.Context, from map[string]*clientv3.Client, resources []wire.Resource,
	do func(context.Context, *clientv3.Client, string, wire.Resource) (int, error),
) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0))
	var keys atomic.Int64
	for name, c := range from {
		defer c.Close()
		for _, resource := range resources {
			g.Go(func() error {
				n, err := do(ctx, c, name, resource)
				keys.Add(int64(n))
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r := result{Keys: int(keys.Load())}
	var err1, err2 error
	r.CPU, err1 = cpuSeconds(os.Getpid())
	_, r.Peak, err2 = resident(os.Getpid())
	return errors.Join(err1, err2, json.NewEncoder(os.Stdout).Encode(r))
}

// list lists a prefix in pages, at one revision.
func list(ctx context.Context, c *clientv3.Client, prefix string, take func([]*mvccpb.KeyValue) error) (n int, err error) {
	from, end, revision := prefix, clientv3.GetPrefixRangeEnd(prefix), int64(0)
	page := int64(etcd.DefaultOptions().PageLimit)
	for {
		resp, err := c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
		if err == nil {
			err = take(resp.Kvs)
		}
		if err != nil {
			return n, fmt.Errorf("list %s: %w", prefix, err)
		}
		n += len(resp.Kvs)
		if !resp.More {
			return n, nil
		}
		revision, from = resp.Header.Revision, string(resp.Kvs[len(resp.Kvs)-1].Key)+"\x00"
	}
}
