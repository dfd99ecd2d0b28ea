package xdsserver

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// nameField is the number of the name field, the same in each type that is served.
const nameField = 1

// body is an encoded resource without its name. A port of a service has one assignment, even when clients use several
// names for it.
type body struct {
	bytes   []byte
	usable  int           // backends in it that take connections
	dual    bool          // a cluster has backends of both families in it (checked before the addresses of a pod are joined)
	leftOut int           // backends that were dropped for lack of room
	version func() string // hash of the content, the same in each process
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

// named returns the whole resource, with its name.
func (b *body) named(name string) []byte {
	all := make([]byte, 0, b.size(name))
	all = protowire.AppendTag(all, nameField, protowire.BytesType)
	all = protowire.AppendString(all, name)
	return append(all, b.bytes...)
}

// size is the length of the whole resource, in bytes.
func (b *body) size(name string) int {
	return protowire.SizeTag(nameField) + protowire.SizeBytes(len(name)) + len(b.bytes)
}

// maxText bounds a text of a cluster in a resource, in bytes: the length of the longest name in Kubernetes.
const maxText = 253

// text makes a text of a cluster valid for a resource: it is cut, and invalid UTF-8 is replaced, which protobuf
// refuses.
func text(of string) string {
	return strings.ToValidUTF8(of[:min(len(of), maxText)], "?")
}

// length is the number of encoded bytes; 0 for nil, a body that is held back.
func (b *body) length() int {
	if b == nil {
		return 0
	}
	return len(b.bytes)
}

// numUsable is the number of backends that take connections; 0 for nil, a body that is held back.
func (b *body) numUsable() int {
	if b == nil {
		return 0
	}
	return b.usable
}

// numLeftOut is the number of backends that were dropped for lack of room; 0 for nil.
func (b *body) numLeftOut() int {
	if b == nil {
		return 0
	}
	return b.leftOut
}
