package kvbackend_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/sessiontest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// site is a kvstore that the test reads and changes directly.
type site struct {
	*testing.T
	client kvstore.Writer
}

// onBoth runs a test on the kvstore in memory and on a real etcd.
func onBoth(t *testing.T, test func(s *site)) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(&site{t, memory.New()})
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		test(&site{t, sessiontest.Connect(t, etcdtest.Start(t).Endpoint())})
	})
}

// backend returns the backend of a node.
func (s *site) backend(node string) *kvbackend.Backend { return s.with(kvbackend.Config{Node: node}) }

// with returns a backend with these settings.
func (s *site) with(c kvbackend.Config) *kvbackend.Backend {
	s.Helper()
	c.Paths, c.Keys = paths, text("")
	if c.Node == "" {
		c.Node = "10.0.0.1"
	}
	b, err := kvbackend.New(s.client, c)
	must(s, err)
	return b
}

func (s *site) put(kvs ...string) {
	s.Helper()
	for i := 0; i < len(kvs); i += 2 {
		if _, err := s.client.Put(s.Context(), kvs[i], []byte(kvs[i+1])); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *site) delete(key string) {
	s.Helper()
	if _, err := s.client.Delete(s.Context(), key); err != nil {
		s.Fatal(err)
	}
}

// want compares everything below the base. kvs are keys, without the base, and values in turn.
func (s *site) want(kvs ...string) {
	s.Helper()
	want, got := make(map[string]string), make(map[string]string)
	for i := 0; i < len(kvs); i += 2 {
		want[kvs[i]] = kvs[i+1]
	}
	_, err := s.client.List(s.Context(), base+"/", func(p kvstore.Page) error {
		for _, kv := range p.Items {
			got[strings.TrimPrefix(string(kv.Key), base+"/")] = string(kv.Value)
		}
		return nil
	})
	must(s, err)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Error(diff)
	}
}

// good fails the test on an error, or if done differs from want.
func (s *site) good(done bool, err error, want bool) {
	s.Helper()
	if err != nil || done != want {
		s.Errorf("%v, %v; want %v", done, err, want)
	}
}

var must = waittest.Must
