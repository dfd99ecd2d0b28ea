// Package other is a user's module, which reads the nodes of a cluster.
package other

import (
	"context"
	"log/slog"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func TestNodesOfACluster(t *testing.T) {
	server := etcdtest.StartProcess(t)
	prefix := wire.Nodes.Prefix("east", false)
	write := func(name string) {
		t.Helper()
		node := `{"Name":"` + name + `","Cluster":"east","ClusterID":1,"IPAddresses":[{"Type":"InternalIP","IP":"10.0.0.1"}]}`
		if _, err := server.Client(t).Put(t.Context(), prefix+name, node); err != nil {
			t.Fatal(err)
		}
	}
	write("worker-1")

	client := etcd.NewDurable(func() (*clientfile.Config, error) { return clientfile.New(server.Endpoint()) }, etcd.DefaultOptions())
	changed := make(chan string)
	nodes := store.NewWatch(store.Kind[wire.Node]{
		Resource: wire.Nodes,
		Decode: func(e wire.Expect) store.Decode[wire.Node] {
			return func(name string, value []byte) (*wire.Node, error) { return wire.DecodeNode(name, value, e) }
		},
		Apply: func(changes []store.Change[wire.Node]) {
			for _, c := range changes {
				if c.New == nil {
					changed <- "-" + c.Old.Name
				} else {
					changed <- "+" + c.New.Name
				}
			}
		},
	}, slog.Default())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- client.Run(ctx) }()
	go func() {
		ended <- nodes.Follow(ctx, store.Session{Client: client, Prefix: prefix, Expect: wire.Expect{Cluster: "east", ClusterID: 1}})
	}()
	wants := func(want string) {
		t.Helper()
		if got := <-changed; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	wants("+worker-1")
	server.RestartAsOther(t)
	write("worker-2")
	wants("+worker-2")
	wants("-worker-1")
	cancel()
	<-ended
	<-ended
	client.Close()
}
