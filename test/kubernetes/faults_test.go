package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestNoSliceIsWithdrawnWithoutEvidence kills everything that slices depend on, each alone and then all together, and
// checks every write in the etcd of the API server: no slice was deleted, and no backend that the remote cluster never
// removed was missing or not ready.
func TestNoSliceIsWithdrawnWithoutEvidence(t *testing.T) {
	t.Parallel()
	s := newSliced(t)
	always := []string{"10.2.0.1", "10.2.0.2"}
	s.Apply(t, syncedService("web", ""), syncedService("probe", ""))
	s.share(t, "web", always...)
	s.share(t, "probe", "10.2.1.0")
	operator := s.begin(t, "first")
	t.Cleanup(func() {
		_ = operator.Process.Kill()
		_ = operator.Wait()
	})
	s.awaitSlices(t, "slices", "probe: 10.2.1.0 true", "web: 10.2.0.1 true, 10.2.0.2 true")
	history := s.record(t)

	step := 0
	works := func(after string) {
		t.Helper()
		step++
		address := fmt.Sprint("10.2.1.", step)
		s.share(t, "probe", address)
		waittest.Until(t, "a change to be written after "+after, func() bool {
			lines, _, err := s.tryWritten(t)
			return err == nil && slices.Equal(lines, []string{"probe: " + address + " true", "web: 10.2.0.1 true, 10.2.0.2 true"})
		})
	}
	s.Kill(t)
	s.Restart(t)
	works("a restart of the API server")
	s.Etcd.Kill(t)
	s.Etcd.Restart(t)
	works("a restart of its etcd")
	s.etcd.Kill(t)
	s.etcd.Restart(t)
	works("a restart of the own etcd")
	s.west.Kill(t)
	s.west.Restart(t)
	works("a restart of the remote etcd")
	s.west.Kill(t)
	_ = operator.Process.Kill()
	_ = operator.Wait()
	operator = s.begin(t, "second", "--clustermesh-sync-timeout", "1s")
	waittest.Until(t, "the second operator to lead", func() bool { return s.leads(t, "second") })
	s.west.Restart(t)
	works("a restart of the operator while the remote etcd was away")
	s.west.Kill(t)
	s.etcd.Kill(t)
	s.Kill(t)
	s.Etcd.Kill(t)
	s.Etcd.Restart(t)
	s.Restart(t)
	s.etcd.Restart(t)
	s.west.Restart(t)
	works("a restart of all")

	seen := map[string]int{}
	for _, e := range history(t) {
		if e.Type == clientv3.EventTypeDelete {
			t.Errorf("deleted: %s", e.Kv.Key)
			continue
		}
		slice := decodeSlice(t, e.Kv.Value)
		service := slice.Labels[discoveryv1.LabelServiceName]
		if slice.Labels[endpointslices.LabelOwner] == "" {
			continue
		}
		seen[service]++
		var ready []string
		for _, endpoint := range slice.Endpoints {
			if *endpoint.Conditions.Ready {
				ready = append(ready, endpoint.Addresses...)
			}
		}
		if slices.Sort(ready); len(ready) == 0 || service == "web" && !slices.Equal(ready, always) {
			t.Errorf("at revision %d %s is written with %q", e.Kv.ModRevision, service, ready)
		}
	}
	if seen["probe"] < step {
		t.Errorf("%d writes were seen of %d", seen["probe"], step)
	}
	t.Logf("writes by service: %v", seen)
}

// record follows the slices in the etcd of the API server from now on, over restarts. The returned function waits for
// all writes, and returns them.
func (s *sliced) record(t *testing.T) func(*testing.T) []*clientv3.Event {
	t.Helper()
	const prefix, end = "/registry/endpointslices", "/registry/endpointslices~end"
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	events := make(chan []*clientv3.Event, 1)
	watch := s.Etcd.Client(t).Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if first := <-watch; first.Err() != nil {
		t.Fatal(first.Err())
	}
	go func() {
		defer close(events)
		var all []*clientv3.Event
		for answer := range watch {
			for _, e := range answer.Events {
				if string(e.Kv.Key) == end {
					events <- all
					return
				}
				all = append(all, e)
			}
		}
	}()
	return func(t *testing.T) []*clientv3.Event {
		t.Helper()
		s.Etcd.Put(t, end, "")
		return waittest.Receive(t, "the end of the history", events)
	}
}

// decodeSlice reads a slice as an API server stores it.
func decodeSlice(t *testing.T, value []byte) *discoveryv1.EndpointSlice {
	t.Helper()
	if !bytes.HasPrefix(value, []byte("k8s\x00")) {
		t.Fatalf("a value that is not of Kubernetes: %q", value)
	}
	scheme := runtime.NewScheme()
	waittest.Must(t, discoveryv1.AddToScheme(scheme))
	slice := new(discoveryv1.EndpointSlice)
	_, _, err := protobuf.NewSerializer(scheme, scheme).Decode(value, nil, slice)
	waittest.Must(t, err)
	return slice
}

func (s *sliced) leads(t *testing.T, name string) bool {
	t.Helper()
	st, err := agentapi.Get[api.Status](t.Context(), s.socket(name), "status")
	return err == nil && st.Agent.Leads != nil && *st.Agent.Leads
}
