package wire

import (
	"slices"
	"strings"
	"testing"
)

// addSeeds seeds a fuzz test with the vectors of two files: the values that Cilium writes, and the values that it was
// given to read.
func addSeeds(f *testing.F, r Resource, written, read string) {
	for _, v := range golden[[]vector](f, written) {
		f.Add(strings.TrimPrefix(v.Key, r.Prefix("cluster2", false)), v.Base64)
	}
	for _, v := range golden[[]decodeVector](f, read) {
		f.Add(v.Name, v.bytes(f))
	}
}

// checkAgain decodes a value and, if it is accepted, encodes and decodes the result again: the second round must change
// nothing.
func checkAgain[T entry](t *testing.T, r Resource, name string, value []byte, decode func(string, []byte, Expect) (T, error)) {
	t.Helper()
	e, err := decode(name, value, cluster2)
	if err != nil {
		checkRejected(t, err)
		return
	}
	if want := r.Key("cluster2", false, name); e.Key() != want {
		t.Fatalf("key is %q, want %q", e.Key(), want)
	}
	first := e.Encode()
	again, err := decode(name, first, cluster2)
	if tooLarge(err) {
		return // it had padding, which counts as size
	}
	if err != nil {
		t.Fatalf("what was accepted is rejected when it is written again as %q: %v", first, err)
	}
	if second := again.Encode(); string(second) != string(first) {
		t.Fatalf("written as %q, then as %q", first, second)
	}
}

func FuzzDecodeNode(f *testing.F) {
	addSeeds(f, Nodes, "nodes.json", "nodes_decode.json")
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		checkAgain(t, Nodes, name, value, DecodeNode)
		if n, err := DecodeNode(name, value, cluster2); err == nil {
			for _, c := range append(n.IPv4SecondaryAllocCIDRs, n.IPv6SecondaryAllocCIDRs...) {
				if p, ok := c.Prefix(); ok && p != p.Masked() {
					t.Fatalf("%v is not masked", p)
				}
			}
		}
	})
}

func FuzzDecodeService(f *testing.F) {
	addSeeds(f, Services, "services.json", "services_decode.json")
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		checkAgain(t, Services, name, value, DecodeService)
	})
}

func FuzzDecodeServiceExport(f *testing.F) {
	addSeeds(f, ServiceExports, "serviceexports.json", "serviceexports_decode.json")
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		checkAgain(t, ServiceExports, name, value, DecodeServiceExport)
	})
}

// FuzzDecodeEndpointSlice decodes the value as it is, and as the content of a frame, since random bytes are hardly ever
// a frame.
func FuzzDecodeEndpointSlice(f *testing.F) {
	addSeeds(f, EndpointSlices, "endpointslices.json", "endpointslices_decode.json")
	for _, v := range golden[[]struct {
		Message []byte `json:"uncompressed_base64"`
	}](f, "endpointslices.json") {
		f.Add("default/web-abcde", v.Message)
	}
	encoder := NewSliceEncoder()
	f.Cleanup(encoder.Close)
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		if _, err := DecodeEndpointSlice(name, value, cluster2); err != nil {
			checkRejected(t, err)
		}
		s := &EndpointSlice{}
		if s.parseProto(value) != nil {
			return
		}
		first := s.appendProto(nil)
		again := &EndpointSlice{}
		err := again.parseProto(first)
		if tooLarge(err) {
			return // it had padding, which counts as size
		}
		if err != nil {
			t.Fatalf("what was accepted is rejected when it is written again as %q: %v", first, err)
		}
		if second := again.appendProto(nil); string(second) != string(first) {
			t.Fatalf("written as %q, then as %q", first, second)
		}
		checkAgain(t, EndpointSlices, name, encoder.Encode(s), DecodeEndpointSlice)
	})
}

// FuzzDecompress: the output is bounded, and compressed data decompresses to the original.
func FuzzDecompress(f *testing.F) {
	for _, v := range golden[[]vector](f, "endpointslices.json") {
		f.Add(v.Base64)
		f.Add(append(slices.Clone(v.Base64), v.Base64...))
	}
	f.Add([]byte("\x28\xb5\x2f\xfd broken"))
	encoder := NewSliceEncoder()
	f.Cleanup(encoder.Close)
	f.Fuzz(func(t *testing.T, value []byte) {
		if out, err := new(inflater).decompress(value); err == nil && len(out) > MaxValue {
			t.Fatalf("%d bytes become %d", len(value), len(out))
		}
		out, err := new(inflater).decompress(encoder.zstd.EncodeAll(value, nil))
		if err != nil || string(out) != string(value) {
			t.Fatalf("%q becomes %q (%v)", value, out, err)
		}
	})
}

func FuzzDecodeIdentity(f *testing.F) {
	for _, v := range golden[[]vector](f, "identities.json") {
		f.Add(strings.TrimPrefix(v.Key, Identities.Prefix("", false)), v.Base64)
	}
	f.Add("0131072", []byte("k8s:io.cilium.k8s.policy.cluster=cluster2"))
	f.Add("131072/x", []byte("$host;any:x;=;:=;reserved:=x;"))
	f.Add("18446744073709551616", []byte{})
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		i, err := DecodeIdentity(name, value, cluster2)
		if err != nil {
			checkRejected(t, err)
			return
		}
		if !(Layout{}).Contains(2, i.ID) {
			t.Fatalf("identity %d was let through", i.ID)
		}
		again, err := DecodeIdentity(name, i.Encode(), cluster2)
		if tooLarge(err) {
			return // "source:" and "=" are always encoded, so the size grows
		}
		if err != nil {
			t.Fatalf("what was accepted is rejected when it is written again as %q: %v", i.Encode(), err)
		}
		if again.ID != i.ID {
			t.Fatalf("identity %d becomes %d", i.ID, again.ID)
		}
	})
}

func FuzzParseLabels(f *testing.F) {
	for _, v := range golden[[]struct{ Input string }](f, "identity_label_parsing.json") {
		f.Add(v.Input)
	}
	f.Fuzz(func(t *testing.T, text string) {
		labels := ParseLabels(text)
		for _, l := range labels {
			if l.Key == "" || l.Source == "" || strings.Contains(l.String(), ";") {
				t.Fatalf("%q holds the label %+v", text, l)
			}
		}
		sorted := ParseLabels(labels.Encode())
		byKey := func(a, b Label) int { return strings.Compare(a.Key, b.Key) }
		if len(sorted) > len(labels) || !slices.IsSortedFunc(labelsWithPlainKeys(sorted), byKey) {
			t.Fatalf("%q is encoded as %q", text, labels.Encode())
		}
	})
}

// labelsWithPlainKeys removes labels whose key changes when it is encoded.
func labelsWithPlainKeys(labels Labels) Labels {
	return slices.DeleteFunc(slices.Clone(labels), func(l Label) bool {
		return l.Source == LabelSourceReserved || strings.Contains(l.Value, "=")
	})
}

func FuzzDecodeClusterConfig(f *testing.F) {
	for _, v := range golden[[]vector](f, "clusterconfigs.json") {
		f.Add(v.Base64)
	}
	for _, v := range golden[[]decodeVector](f, "clusterconfigs_decode.json") {
		f.Add([]byte(v.Value))
	}
	local := ClusterInfo{Name: "local1", ID: 1, MaxConnectedClusters: 255}
	f.Fuzz(func(t *testing.T, value []byte) {
		c, err := DecodeClusterConfig(value)
		if err != nil {
			checkRejected(t, err)
			return
		}
		again, err := DecodeClusterConfig(c.Encode())
		if err != nil || string(again.Encode()) != string(c.Encode()) {
			t.Fatalf("%q becomes %q (%v)", c.Encode(), again.Encode(), err)
		}
		if err := c.Validate(local); err == nil && (c.ID == 0 || c.ID > 255) {
			t.Fatalf("cluster ID %d is accepted", c.ID)
		}
	})
}
