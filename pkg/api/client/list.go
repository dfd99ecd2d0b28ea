package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strconv"
)

// Query restricts a list. The zero value means everything.
type Query struct {
	Cluster, Namespace, Name, Identity, Prefix string
	Labels                                     string // a selector, such as app=web
	Kind                                       string // of conflicts and events
	Contains                                   string // a part of the name, of an address also of its pod's; case does not matter
	Limit                                      int    // 0: no limit
	Cursor                                     string
}

func (q Query) values() url.Values {
	v := given(map[string]string{
		"cluster": q.Cluster, "namespace": q.Namespace, "name": q.Name, "identity": q.Identity,
		"prefix": q.Prefix, "labels": q.Labels, "kind": q.Kind, "contains": q.Contains, "cursor": q.Cursor,
	})
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// given returns the query with the parameters that are not empty.
func given(parameters map[string]string) url.Values {
	v := url.Values{}
	for name, value := range parameters {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// Items is a list that is being read. It holds one item at a time, however long the list is.
type Items[T any] struct {
	// Revision is the revision of the list.
	Revision uint64

	body io.ReadCloser
	dec  *json.Decoder
	next string
}

// List requests a list, such as "nodes". The caller reads it with All or closes it. The context must not end before the
// list is read.
func List[T any](ctx context.Context, c *Client, resource string, q Query) (*Items[T], error) {
	body, err := c.send(ctx, request{path: []string{"v1", resource}, query: q.values()})
	if err != nil {
		return nil, err
	}
	it := &Items[T]{body: body, dec: json.NewDecoder(body)}
	err = it.expect(json.Delim('{'))
	if err == nil {
		err = it.fields(true)
	}
	if err != nil {
		it.Close()
		return nil, broken(ctx, err)
	}
	return it, nil
}

// fields reads the fields of the list object, up to the items or the end.
func (it *Items[T]) fields(untilItems bool) error {
	for it.dec.More() {
		name, err := it.dec.Token()
		if err != nil {
			return err
		}
		switch name {
		case "items":
			return it.expect(json.Delim('['))
		case "revision":
			err = it.dec.Decode(&it.Revision)
		case "next":
			err = it.dec.Decode(&it.next)
		default:
			err = it.dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	if untilItems {
		return errors.New("a list without items")
	}
	return it.expect(json.Delim('}'))
}

func (it *Items[T]) expect(want json.Delim) error {
	got, err := it.dec.Token()
	if err == nil && got != want {
		err = fmt.Errorf("found %v instead of %v", got, want)
	}
	return err
}

// All reads the items, once. It ends with an error when the list is incomplete. It closes the list.
func (it *Items[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer it.Close()
		var zero T
		for it.dec.More() {
			var v T
			if err := it.dec.Decode(&v); err != nil {
				yield(zero, broken(ctx, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
		err := it.expect(json.Delim(']'))
		if err == nil {
			err = it.fields(false)
		}
		if err != nil {
			yield(zero, broken(ctx, err))
		}
	}
}

// Next returns the cursor of the next page, known once All has ended; empty when there is none.
func (it *Items[T]) Next() string { return it.next }

// Close closes a list that is not read to its end.
func (it *Items[T]) Close() { it.body.Close() }
