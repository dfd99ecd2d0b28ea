package clustermesh

import (
	"errors"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// granted refuses what the policy file does not grant to a remote cluster. The
// policy is that of the moment at which a session begins to decode: a change of it
// begins another one.
func granted[T any](v *View, decode func(wire.Expect) store.Decode[T], check func(*claims.Grant, *T) error) func(wire.Expect) store.Decode[T] {
	return func(e wire.Expect) store.Decode[T] {
		plain := decode(e)
		grant, admitted := v.Granted.Policy().Of(e.Cluster)
		if e.Own || admitted && grant == nil {
			return plain
		}
		return func(name string, value []byte) (*T, error) {
			object, err := plain(name, value)
			switch {
			case err != nil:
				return nil, err
			case !admitted:
				err = errors.New("the policy file has no entry for the cluster")
			default:
				err = check(grant, object)
			}
			if err != nil {
				return nil, &wire.RejectError{Reason: wire.ReasonPolicy, Err: err}
			}
			return object, nil
		}
	}
}

func grantNode(g *claims.Grant, n *nodes.Node) error {
	for _, c := range n.Claims() {
		if err := first(g.Address(c.Prefix), g.Host(c.HostIP)); err != nil {
			return err
		}
	}
	return nil
}

func grantIP(g *claims.Grant, e *ipcache.Entry) error {
	return first(g.Address(e.Prefix()), g.Host(e.HostIP()), g.Namespace(e.Namespace()), g.Identity(e.Identity()))
}

func grantService(g *claims.Grant, s *services.Service) error {
	if err := g.Service(s.Namespace, s.Name); err != nil {
		return err
	}
	for _, b := range s.Backends {
		if err := g.Host(b.IP); err != nil {
			return err
		}
	}
	return nil
}

func grantExport(g *claims.Grant, x *services.Export) error { return g.Service(x.Namespace, x.Name) }

func grantIdentity(g *claims.Grant, i *allocator.Identity) error {
	if err := g.Identity(i.ID); err != nil {
		return err
	}
	for l := range i.Labels.All() {
		if l.Key == wire.LabelNamespace {
			if err := g.Namespace(l.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func grantSlice(g *claims.Grant, s *services.Slice) error {
	if err := g.Namespace(s.Namespace); err != nil {
		return err
	}
	if s.Service != "" {
		if err := g.Service(s.Namespace, s.Service); err != nil {
			return err
		}
	}
	for a := range s.Addresses() {
		if err := g.Host(a); err != nil {
			return err
		}
	}
	return nil
}
