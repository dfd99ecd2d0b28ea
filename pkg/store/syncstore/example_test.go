package syncstore_test

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
)

// Keys without a lease stay after their writer has ended.
func ExampleSync_unleased() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, err := etcdserver.Start(etcdserver.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer server.Close()
	client := etcd.NewDurable(func() (*clientfile.Config, error) { return clientfile.New(server.Endpoint()) }, etcd.DefaultOptions())
	defer client.Close()
	outbox := syncstore.NewOutbox(client, nil, nil, nil)
	colors := syncstore.New(syncstore.Params{Prefix: "colors/", Outbox: outbox, Unleased: true})
	colors.Put("sky", []byte("blue"))
	colors.Complete() // all other keys below the prefix are deleted

	var running errgroup.Group
	running.Go(func() error { return client.Run(ctx) })
	running.Go(func() error { return outbox.Run(ctx) })
	running.Go(func() error { return colors.Run(ctx) })
	err = colors.WaitClean(ctx)
	cancel()
	_ = running.Wait() // with the context's error

	answer, _ := server.Local().Get(context.Background(), "colors/sky")
	fmt.Println(err, string(answer.Kvs[0].Value), "lease", answer.Kvs[0].Lease)
	// Output: <nil> blue lease 0
}
