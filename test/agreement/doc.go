// Package agreement has no code but its test: whatever protocol a client speaks, the agent sends it to
// the backends that [backends.Choose] chooses.
//
// [backends.Choose]: github.com/mesh-agent/mesh-agent/pkg/backends.Choose
package agreement
