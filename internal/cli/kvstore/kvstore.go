// Package kvstore reads a cluster's kvstore, without an agent.
package kvstore

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	k := &target.Choice{Settings: config.NewSettings()}
	cmd := command.Group("kvstore", "Read a cluster's kvstore, without a running agent",
		kvGetCommand(c, k), kvListCommand(c, k), kvWatchCommand(c, k), kvStatusCommand(c, k))
	cmd.Long = "Read a cluster's kvstore, without a running agent: that of --cluster, with its client file in the mesh directory,\n" +
		"or the local one, with --kvstore-opt. It never writes.\n\n" +
		"Exit code 0: success. 1: a negative answer, such as a key that does not exist.\n" +
		"2: wrong usage, or the kvstore does not answer."
	f := cmd.PersistentFlags()
	k.Settings.Register(f, "clustermesh-config", "kvstore-opt")
	f.StringVar(&k.Cluster, "cluster", "", "read the kvstore of this remote cluster")
	f.DurationVar(&k.Timeout, "timeout", 10*time.Second, "time limit for each endpoint, and for each answer")
	_ = cmd.RegisterFlagCompletionFunc("cluster", target.CompleteClientFile(c, k.Settings)) // the flag is there
	return cmd
}

// ShownKey is a key and its value in structured output: Value has text, Base64 has other bytes, and Decoded has the
// meaning of a known kind.
type ShownKey struct {
	Event       string  `json:"event,omitempty"` // of a watch
	Key         string  `json:"key"`
	KeyBase64   string  `json:"keyBase64,omitempty"` // of a key that is not text
	Value       *string `json:"value,omitempty"`
	Base64      string  `json:"base64,omitempty"`
	Decoded     any     `json:"decoded,omitempty"`
	ModRevision int64   `json:"modRevision,omitempty"`
	Lease       string  `json:"lease,omitempty"` // in hexadecimal
}

// show describes a key without its value.
func show(kv kvstore.KeyValue) ShownKey {
	s := ShownKey{Key: string(kv.Key), ModRevision: kv.ModRevision}
	if !utf8.Valid(kv.Key) {
		s.KeyBase64 = base64.StdEncoding.EncodeToString(kv.Key)
	}
	if kv.Lease != 0 {
		s.Lease = strconv.FormatInt(kv.Lease, 16)
	}
	return s
}

func (s ShownKey) withValue(key string, value []byte) ShownKey {
	if utf8.Valid(value) {
		s.Value = new(string(value))
		return s
	}
	s.Base64, s.Decoded = base64.StdEncoding.EncodeToString(value), decodeSlice(key, value)
	return s
}

// text returns a value on one line: printable text unchanged, an endpoint slice as JSON, other text quoted, other
// bytes in base64.
func (s ShownKey) text() string {
	switch {
	case s.Value != nil && printer.Clean(*s.Value) == *s.Value:
		return *s.Value
	case s.Value != nil:
		return strconv.Quote(*s.Value)
	case s.Decoded != nil:
		if text, err := json.Marshal(s.Decoded); err == nil {
			return printer.Clean(string(text))
		}
	}
	return "base64:" + s.Base64
}

// decodeSlice decodes an endpoint slice; nil when the key is of another kind, or when the value does not belong to
// the key.
func decodeSlice(key string, value []byte) any {
	layout, err := wire.NewLayout(wire.MaxConnectedClusters511)
	for _, cached := range []bool{false, true} {
		rest, ok := strings.CutPrefix(key, wire.EndpointSlices.StorePrefix(cached)+"/")
		if !ok || err != nil {
			continue
		}
		cluster, name, _ := strings.Cut(rest, "/")
		if slice, err := wire.DecodeEndpointSlice(name, value, wire.Expect{Cluster: cluster, Layout: layout}); err == nil {
			return slice
		}
	}
	return nil
}
