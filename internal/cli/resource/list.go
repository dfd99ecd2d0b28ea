package resource

import (
	"context"
	"errors"
	"net/http"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Collect reads a list, or at most this many items of it; cut tells whether
// there are more. The result is never nil.
func Collect[T any](ctx context.Context, cl *client.Client, resource string, q client.Query, most int) (items []T, cut bool, err error) {
	q.Limit = most
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

// Every reads a list that is bounded by what it holds.
func Every[T any](ctx context.Context, cl *client.Client, resource string, q client.Query) ([]T, error) {
	items, _, err := Collect[T](ctx, cl, resource, q, 0)
	return items, err
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
