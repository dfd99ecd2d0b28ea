package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
)

// A prefix is followed across all sessions with an etcd. Here another etcd with other contents replaces it: the
// differences are applied, including deletions.
func ExampleWatch_Follow() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, err := start("127.0.0.1:0", "colors/sky", "blue", "colors/grass", "green")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	client := etcd.NewDurable(func() (*clientfile.Config, error) { return clientfile.New(first.Endpoint()) }, etcd.DefaultOptions())
	changed := make(chan string)
	watch := store.NewRawWatch(func(changes []store.Change[store.Raw]) {
		for _, c := range changes {
			if c.New == nil {
				changed <- c.Name + " is gone"
			} else {
				changed <- c.Name + " is " + string(*c.New)
			}
		}
	}, slog.New(slog.DiscardHandler))

	var running errgroup.Group
	running.Go(func() error { return client.Run(ctx) })
	running.Go(func() error { return watch.Follow(ctx, store.Session{Client: client, Prefix: "colors/"}) })
	fmt.Println(<-changed)
	fmt.Println(<-changed)

	first.Close()
	other, err := start(first.Addr(), "colors/grass", "yellow")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(<-changed)
	fmt.Println(<-changed)

	cancel()
	_ = running.Wait() // with the context's error
	client.Close()
	other.Close()
	// Output:
	// grass is green
	// sky is blue
	// grass is yellow
	// sky is gone
}

// start starts an etcd with these keys and values.
func start(addr string, contents ...string) (*etcdserver.Server, error) {
	srv, err := etcdserver.Start(etcdserver.Config{Addr: addr})
	for i := 0; err == nil && i < len(contents); i += 2 {
		_, err = srv.Local().Put(context.Background(), contents[i], contents[i+1])
	}
	return srv, err
}
