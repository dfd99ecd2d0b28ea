package main

import (
	"runtime/debug"
	"strconv"
	"strings"

	cmtypes "github.com/cilium/cilium/pkg/clustermesh/types"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// codec encodes and decodes.
type codec struct{}

// runCodec takes the greatest number of clusters of the mesh, 255 without any.
func runCodec(args []string) error {
	local := cmtypes.ClusterInfo{MaxConnectedClusters: 255}
	if len(args) > 0 {
		most, err := strconv.ParseUint(args[0], 10, 32)
		if err != nil {
			return err
		}
		local.MaxConnectedClusters = uint32(most)
	}
	if err := local.InitClusterIDMax(); err != nil {
		return err
	}
	return serve(map[string]any{"Codec": codec{}})
}

// About returns the peer's release and kinds.
func (codec) About(_ struct{}, reply *model.About) error {
	reply.Release = release()
	for _, k := range kinds() {
		reply.Kinds = append(reply.Kinds, k.name)
	}
	return nil
}

// Encode writes the objects as the release does.
func (codec) Encode(objects model.Objects, reply *model.EncodeReply) error {
	for _, k := range kinds() {
		for _, key := range k.encode(&objects) {
			value, err := key.Marshal()
			if err != nil {
				return err
			}
			reply.Entries = append(reply.Entries, model.KV{Key: k.prefix + "/" + key.GetKeyName(), Value: value})
		}
	}
	return nil
}

// Decode reads the entries as the release's readers of a remote cluster do.
func (codec) Decode(args model.DecodeArgs, reply *model.DecodeReply) error {
	for _, entry := range args.Entries {
		if err := decode(args.Expect, entry, &reply.Objects); err != nil {
			reply.Rejected = append(reply.Rejected, model.Rejected{Key: entry.Key, Error: err.Error()})
		}
	}
	return nil
}

// DecodeEach reads each entry for itself.
func (c codec) DecodeEach(args model.DecodeArgs, reply *model.DecodeEachReply) error {
	for _, entry := range args.Entries {
		var one model.DecodeReply
		if err := c.Decode(model.DecodeArgs{Expect: args.Expect, Entries: []model.KV{entry}}, &one); err != nil {
			return err
		}
		reply.Each = append(reply.Each, one)
	}
	return nil
}

func decode(e model.Expect, entry model.KV, into *model.Objects) error {
	k, name, err := kindByKey(entry.Key, e.Cluster)
	if err != nil {
		return err
	}
	key := k.creator(e)()
	if err := key.Unmarshal(name, entry.Value); err != nil {
		return err
	}
	return k.collect(e, key, into)
}

// release returns the release of Cilium that the peer is made of.
func release() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/cilium/cilium" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}
