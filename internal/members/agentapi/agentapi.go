// Package agentapi asks a running mesh-agent, for tests.
package agentapi

import (
	"context"

	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Get returns what the mesh-agent on a socket answers to GET /v1/PATH.
func Get[T any](ctx context.Context, socket string, path ...string) (*T, error) {
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return client.Get[T](ctx, c, append([]string{"v1"}, path...)...)
}

// List returns all objects of a resource, as the mesh-agent on a socket answers now.
func List[T any](ctx context.Context, socket, resource string) (all []T, err error) {
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	list, err := client.List[T](ctx, c, resource, client.Query{})
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for one, err := range list.All(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
