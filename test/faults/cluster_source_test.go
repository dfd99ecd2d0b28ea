package faults

import (
	"context"
	"fmt"
	"maps"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// values are the present contents of the server, without the canaries.
func (c *cluster) values() (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := c.kv.Get(ctx, wire.StatePrefix+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading the contents of %s: %w", c.name, err)
	}
	all := map[string][]byte{}
	for _, kv := range resp.Kvs {
		if key := string(kv.Key); !isCanary(key) {
			all[key] = kv.Value
		}
	}
	return all, nil
}

// source is the part of a cluster that the mesh can see.
type source struct {
	there   bool
	name    string
	id      uint32
	values  map[string][]byte
	refused map[string]refusal
}

// read returns what the mesh can see now.
func (c *cluster) read() (source, error) {
	switch {
	case c.gone:
		return source{}, nil
	case c.frozen != nil:
		return *c.frozen, nil
	}
	values, err := c.values()
	return source{true, c.name, c.id, values, maps.Clone(c.refused)}, err
}

// inForce is the part that counts: acceptable values, and in place of a refused one the earlier value, unless that was
// in doubt and the view does not have it.
func (s source) inForce(seen model.Sight) model.Contents {
	in := model.Contents{Name: s.name, ID: s.id, Values: map[string][]byte{}}
	for key, value := range s.values {
		r, over := s.refused[key]
		switch {
		case model.Acceptable(key, value, expect(s.name, s.id)):
			in.Values[key] = value
		case over && (!r.doubtful || seen.Has(s.name, key)):
			in.Values[key] = r.old
		}
	}
	return in
}
