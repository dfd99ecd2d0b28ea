package xdsserver

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// nameField is the number of the field with the name, in each type that is served.
const nameField = 1

// body is an encoded resource without its name. A port of a service has one assignment, however many names
// clients have for it.
type body struct {
	bytes   []byte
	usable  int           // backends in it that take connections
	dual    bool          // it has, or had before pods were put together, backends of both families of one cluster
	leftOut int           // backends for which there is no room in it
	version func() string // of the content: the same in each process
}

// newBody encodes a resource whose name is empty. An error is a bug: all texts in it are UTF-8.
func newBody(m proto.Message) (*body, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &body{bytes: encoded, version: sync.OnceValue(func() string {
		sum := sha256.Sum256(encoded)
		return base64.RawURLEncoding.EncodeToString(sum[:16])
	})}, nil
}

// named is the whole resource.
func (b *body) named(name string) []byte {
	all := make([]byte, 0, b.size(name))
	all = protowire.AppendTag(all, nameField, protowire.BytesType)
	all = protowire.AppendString(all, name)
	return append(all, b.bytes...)
}

// size is how long the whole resource is, in bytes.
func (b *body) size(name string) int {
	return protowire.SizeTag(nameField) + protowire.SizeBytes(len(name)) + len(b.bytes)
}

// maxText bounds a text of a cluster in a resource, in bytes: the longest name in Kubernetes.
const maxText = 253

// text is a text of a cluster as it may be in a resource: protobuf refuses what is no UTF-8.
func text(of string) string {
	return strings.ToValidUTF8(of[:min(len(of), maxText)], "?")
}

// length is how many bytes are kept of it; none of what is held back.
func (b *body) length() int {
	if b == nil {
		return 0
	}
	return len(b.bytes)
}

// numUsable is how many backends take connections; none of what is held back.
func (b *body) numUsable() int {
	if b == nil {
		return 0
	}
	return b.usable
}

// numLeftOut is for how many backends there is no room.
func (b *body) numLeftOut() int {
	if b == nil {
		return 0
	}
	return b.leftOut
}
