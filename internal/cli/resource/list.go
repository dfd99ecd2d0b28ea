package resource

import (
	"context"
	"errors"
	"net/http"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Collect reads a list, or as many items of it as the query limits it to; cut tells
// whether there are more. The result is never nil without an error.
func Collect[T any](ctx context.Context, cl *client.Client, resource string, q client.Query) (items []T, cut bool, err error) {
	l, err := client.List[T](ctx, cl, resource, q)
	if err != nil {
		return nil, false, err
	}
	items = []T{}
	for v, err := range l.All(ctx) {
		if err != nil {
			return nil, false, err
		}
		items = append(items, v)
	}
	return items, l.Next() != "", nil
}

// IsNotFound tells whether the agent has no such object.
func IsNotFound(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Status == http.StatusNotFound
}

// Each asks for all objects of a resource.
func Each[T any](ctx context.Context, cl *client.Client, resource string, take func(T)) error {
	list, err := client.List[T](ctx, cl, resource, client.Query{})
	if err != nil {
		return err
	}
	for one, err := range list.All(ctx) {
		if err != nil {
			return err
		}
		take(one)
	}
	return nil
}
