// Package agentapi sends requests to a running mesh-agent, for tests.
package agentapi

import (
	"context"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Get returns the answer of the mesh-agent on a socket to GET /v1/PATH.
func Get[T any](ctx context.Context, socket string, path ...string) (*T, error) {
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return client.Get[T](ctx, c, append([]string{"v1"}, path...)...)
}

// List returns all objects of a resource, in the present answer of the mesh-agent on a socket.
func List[T any](ctx context.Context, socket, resource string) ([]T, error) {
	list, err := Get[api.List[T]](ctx, socket, resource)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
