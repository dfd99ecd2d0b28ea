package xdsserver

import (
	"context"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// answerOverhead is at least the size of a resource in an answer besides its body and its name: the type and the
// version.
const answerOverhead = 128

// answer has resources for one client. It is encoded when it is sent, so that waiting answers need little memory.
type answer struct {
	from    *resourceCache
	names   []string
	bodies  []*body // in the order of names
	gone    []string
	version string
	known   map[string]string // versions of everything that the client has after this answer
}

// GetReturnedResources returns the resources that the client has after this answer, with their versions.
func (a *answer) GetReturnedResources() map[string]string { return a.known }

// GetNextVersionMap returns the same as GetReturnedResources.
func (a *answer) GetNextVersionMap() map[string]string { return a.known }

// GetResponseVersion returns the version of the answer.
func (a *answer) GetResponseVersion() string { return a.version }

// GetContext returns an empty context.
func (a *answer) GetContext() context.Context { return context.Background() }

func (a *answer) resource(i int) *anypb.Any {
	return &anypb.Any{TypeUrl: a.from.kind.url(), Value: a.bodies[i].named(a.names[i])}
}

// wholeAnswer is an answer with the state of the world.
type wholeAnswer struct{ *answer }

var _ cache.Response = wholeAnswer{}

// GetDiscoveryResponse returns the message, without a nonce.
func (a wholeAnswer) GetDiscoveryResponse() (*discovery.DiscoveryResponse, error) {
	r := &discovery.DiscoveryResponse{VersionInfo: a.version, TypeUrl: a.from.kind.url(), Resources: make([]*anypb.Any, 0, len(a.names))}
	for i := range a.names {
		r.Resources = append(r.Resources, a.resource(i))
	}
	return r, nil
}

// GetRequest returns a request with the type alone.
func (a wholeAnswer) GetRequest() *discovery.DiscoveryRequest { return a.from.ofType }

// GetVersion returns the version of the answer.
func (a wholeAnswer) GetVersion() (string, error) { return a.version, nil }

// deltaAnswer is an incremental answer.
type deltaAnswer struct{ *answer }

var _ cache.DeltaResponse = deltaAnswer{}

// GetDeltaDiscoveryResponse returns the message, without a nonce.
func (a deltaAnswer) GetDeltaDiscoveryResponse() (*discovery.DeltaDiscoveryResponse, error) {
	r := &discovery.DeltaDiscoveryResponse{
		SystemVersionInfo: a.version, TypeUrl: a.from.kind.url(), RemovedResources: a.gone, Resources: make([]*discovery.Resource, 0, len(a.names)),
	}
	for i, name := range a.names {
		r.Resources = append(r.Resources, &discovery.Resource{Name: name, Version: a.bodies[i].version(), Resource: a.resource(i)})
	}
	return r, nil
}

// GetDeltaRequest returns a request with the type alone.
func (a deltaAnswer) GetDeltaRequest() *discovery.DeltaDiscoveryRequest { return a.from.ofTypeDelta }

// GetSystemVersion returns the version of the answer.
func (a deltaAnswer) GetSystemVersion() (string, error) { return a.version, nil }
