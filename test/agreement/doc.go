// Package agreement has only tests: with every protocol, the agent sends a client to
// the backends that [backends.Choose] chooses. Services that are imported through the MCS API are made of what
// random clusters export, by the plans of internal/kube/mcs and internal/kube/endpointslices (docs/spec/mcs.md B), and have the
// backends and names that their imports say.
//
// [backends.Choose]: github.com/mesh-agent/mesh-agent/pkg/backends.Choose
package agreement
