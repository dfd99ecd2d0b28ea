package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkDecode runs a decoder over the vectors of a file and compares the verdict, the reason, and the accepted value
// when it is encoded again.
func checkDecode(t *testing.T, file string, reasons map[string]Reason, decode func(decodeVector, []byte) (func() []byte, error)) {
	t.Parallel()
	vectors := golden[[]decodeVector](t, file)
	seen := map[string]Reason{}
	for _, v := range vectors {
		t.Run(v.Note, func(t *testing.T) {
			encode, err := decode(v, v.bytes(t))
			checkVerdict(t, v, err)
			if err != nil {
				seen[v.Note] = checkRejected(t, err).Reason
				return
			}
			got := string(encode())
			if v.Base64 != "" {
				got = base64Text(got)
			}
			same(t, "written again", got, *v.ReMarshalled)
		})
	}
	if d := cmp.Diff(reasons, seen); d != "" {
		t.Errorf("reasons (-want +got):\n%s", d)
	}
}

func TestGoldenNodesAreReadAsCiliumDoes(t *testing.T) {
	reasons := map[string]Reason{
		"name differs from key":                              ReasonKey,
		"slash in name: name equals key remainder, accepted": ReasonName,
		"wrong cluster":                                      ReasonCluster,
		"wrong cluster ID":                                   ReasonClusterID,
		"ClusterID missing => 0 is reserved":                 ReasonClusterID,
		"ID above 255 limit":                                 ReasonClusterID,
		"cluster empty":                                      ReasonMissing,
		"name missing":                                       ReasonMissing,
		"uint8 overflow rejects the whole value":             ReasonMalformed,
		"negative uint8 rejects the whole value":             ReasonMalformed,
		"bad IP rejects the whole value":                     ReasonAddress,
		"CIDR as text is not accepted":                       ReasonMalformed,
		"empty value":                                        ReasonMalformed,
		"JSON null":                                          ReasonMissing,
		"wrong JSON type":                                    ReasonMalformed,
		"local cluster's own ID passes the base check but fails the expected-ID check": ReasonClusterID,
	}
	checkDecode(t, "nodes_decode.json", reasons, func(v decodeVector, b []byte) (func() []byte, error) {
		n, err := DecodeNode(v.Name, b, v.expect())
		return n.Encode, err
	})
}

func TestGoldenServicesAreReadAsCiliumDoes(t *testing.T) {
	reasons := map[string]Reason{
		"port overflow rejects the whole value": ReasonMalformed,
		"bad backend address":                   ReasonAddress,
		"IPv6 zone rejected":                    ReasonAddress,
		"cluster-annotated address rejected":    ReasonAddress,
		"empty frontend address":                ReasonAddress,
		"frontend None rejected":                ReasonAddress,
		"name differs from key":                 ReasonKey,
		"key without namespace":                 ReasonKey,
		"wrong cluster":                         ReasonCluster,
		"wrong cluster ID":                      ReasonClusterID,
		"cluster ID missing":                    ReasonClusterID,
		"namespace empty":                       ReasonMissing,
		"not JSON":                              ReasonMalformed,
	}
	checkDecode(t, "services_decode.json", reasons, func(v decodeVector, b []byte) (func() []byte, error) {
		s, err := DecodeService(v.Name, b, v.expect())
		return s.Encode, err
	})
}

func TestGoldenServiceExportsAreReadAsCiliumDoes(t *testing.T) {
	reasons := map[string]Reason{
		"unknown type":            ReasonValue,
		"empty affinity rejected": ReasonValue,
		"timestamp missing":       ReasonMissing,
		"timestamp null":          ReasonMissing,
		"unknown policy":          ReasonValue,
		"unknown distribution":    ReasonValue,
		"key mismatch":            ReasonKey,
		"wrong cluster":           ReasonCluster,
		"garbage":                 ReasonMalformed,
	}
	checkDecode(t, "serviceexports_decode.json", reasons, func(v decodeVector, b []byte) (func() []byte, error) {
		s, err := DecodeServiceExport(v.Name, b, v.expect())
		return s.Encode, err
	})
}

func TestGoldenEndpointSlicesAreReadAsCiliumDoes(t *testing.T) {
	reasons := map[string]Reason{
		"protobuf without zstd framing":    ReasonMalformed,
		"JSON is not accepted on the wire": ReasonMalformed,
		"trailing garbage in the protobuf": ReasonMalformed,
		"decompresses beyond 16 MiB":       ReasonTooLarge,
		"key mismatch":                     ReasonKey,
		"wrong cluster":                    ReasonCluster,
		"wrong cluster ID":                 ReasonClusterID,
		"FQDN slices rejected":             ReasonValue,
		"address type missing":             ReasonValue,
		"IPv4 address in IPv6 slice":       ReasonAddress,
		"zoned address":                    ReasonAddress,
		"namespace empty":                  ReasonMissing,
		"empty value: zero zstd frames decode to nothing, so the message is empty": ReasonMissing,
	}
	checkDecode(t, "endpointslices_decode.json", reasons, func(v decodeVector, b []byte) (func() []byte, error) {
		s, err := DecodeEndpointSlice(v.Name, b, v.expect())
		return s.Encode, err
	})
}

func TestGoldenClusterConfigsAreReadAsCiliumDoes(t *testing.T) {
	reasons := map[string]Reason{
		"string ID":   ReasonMalformed,
		"negative ID": ReasonMalformed,
		"overflow":    ReasonMalformed,
		"empty value": ReasonMalformed,
	}
	checkDecode(t, "clusterconfigs_decode.json", reasons, func(v decodeVector, b []byte) (func() []byte, error) {
		c, err := DecodeClusterConfig(b)
		return c.Encode, err
	})
}

// TestGoldenIPsAreReadAsCiliumDoes: the vectors of IPs record the store only. A reader of Cilium differs in two of
// them: it drops entries without an address.
func TestGoldenIPsAreReadAsCiliumDoes(t *testing.T) {
	t.Parallel()
	without := 0
	for _, v := range golden[[]decodeVector](t, "ips_decode.json") {
		t.Run(v.Note, func(t *testing.T) {
			ip, err := DecodeIP(v.Name, v.bytes(t), v.expect())
			if v.Name == "<nil>" {
				without++
				if r := checkRejected(t, err); r.Reason != ReasonAddress {
					t.Errorf("an entry without an address is rejected because of %s", r.Reason)
				}
				return
			}
			checkVerdict(t, v, err)
			if err != nil {
				return
			}
			same(t, "name", nameOf(ip), v.Name)

			var p IPIdentityPair
			must(t, json.Unmarshal(v.bytes(t), &p))
			same(t, "written again", string(p.Encode()), *v.ReMarshalled)
		})
	}
	if without != 2 {
		t.Errorf("%d vectors have no address, want 2", without)
	}
}

// TestGoldenIPsAreFilteredAsCiliumDoes checks which IPs a reader keeps, with the trace of Cilium's own watcher.
func TestGoldenIPsAreFilteredAsCiliumDoes(t *testing.T) {
	t.Parallel()
	type trace struct {
		Name   string
		Phases []struct {
			Prefix string   `json:"watched_prefix"`
			In     []string `json:"events_in"`
			Calls  []string `json:"observer_calls"`
		}
	}
	ran := 0
	for _, tr := range golden[[]trace](t, "watch_traces.json") {
		if !strings.HasPrefix(tr.Name, "ip watcher") || strings.Contains(tr.Name, "overlapping") {
			continue
		}
		ran++
		phase := tr.Phases[0]
		var got []string
		for _, event := range phase.In {
			op, rest, _ := strings.Cut(event, " ")
			if op != "create" && op != "modify" {
				continue
			}
			key, value, _ := strings.Cut(rest, " ")
			ip, err := DecodeIP(strings.TrimPrefix(key, phase.Prefix), []byte(value), cluster2)
			if err == nil {
				got = append(got, traceLine(ip))
			}
		}
		want := slices.DeleteFunc(phase.Calls, func(c string) bool { return !strings.HasPrefix(c, "upsert") })
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tr.Name, d)
		}
	}
	if ran != 2 {
		t.Errorf("%d traces ran, want 2", ran)
	}
}

// nameOf returns the name of an entry's key.
func nameOf(ip IP) string {
	if ip.Host {
		return ip.Prefix.Addr().String()
	}
	return ip.Prefix.String()
}

// traceLine formats an entry as the trace does.
func traceLine(ip IP) string {
	host := "<nil>"
	if ip.HostIP.IsValid() {
		host = ip.HostIP.String()
	}
	line := "upsert ip=" + nameOf(ip) + " host=" + host + " key=" + strconv.Itoa(int(ip.EncryptionKey)) +
		" id=" + strconv.Itoa(int(ip.Identity)) + " source=clustermesh"
	if ip.Pod == "" {
		return line + " k8s=none"
	}
	line += " ns=" + ip.Namespace + " pod=" + ip.Pod + " ports=["
	for _, p := range ip.Ports {
		line += p.Name + "=" + strconv.Itoa(int(p.Port)) + "/" + map[string]string{"TCP": "6"}[p.Protocol]
	}
	return line + "]"
}

func TestGoldenRemoteIdentitiesAreKeptAsCiliumDoes(t *testing.T) {
	t.Parallel()
	type identityVector struct {
		Key, Value, Note string
		Kept             bool
		KeptAs           string `json:"kept_as"`
	}
	all := golden[map[string]json.RawMessage](t, "remote_identities.json")
	for _, origin := range slices.Sorted(maps.Keys(all)) {
		if origin == "reader" {
			continue
		}
		var vectors []identityVector
		must(t, json.Unmarshal(all[origin], &vectors))
		prefix := Identities.Prefix("cluster2", strings.Contains(origin, "cache"))
		for _, v := range vectors {
			t.Run(origin+"/"+v.Note, func(t *testing.T) {
				name, ok := strings.CutPrefix(v.Key, prefix)
				if !ok {
					t.Fatalf("%s does not begin with %s", v.Key, prefix)
				}
				i, err := DecodeIdentity(name, []byte(v.Value), cluster2)
				if v.Kept != (err == nil) {
					t.Fatalf("kept: %v, want %v (%v)", err == nil, v.Kept, err)
				}
				if err != nil {
					checkRejected(t, err)
					return
				}
				same(t, "kept as", strconv.Itoa(int(i.ID))+" => "+i.Labels.String(), v.KeptAs)
			})
		}
	}
}

func TestRejectedIdentitiesSayWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name, value string
		reason      Reason
	}{
		"not a number":            {"abc", "k8s:a=b;", ReasonKey},
		"hexadecimal":             {"0x20012", "k8s:a=b;", ReasonKey},
		"deeper path":             {"131091/x", "k8s:a=b;", ReasonKey},
		"no name":                 {"", "k8s:a=b;", ReasonKey},
		"signed":                  {"+131072", "k8s:a=b;", ReasonKey},
		"zero":                    {"0", "k8s:a=b;", ReasonRange},
		"more than 32 bits":       {"4294967296", "k8s:a=b;", ReasonRange},
		"reserved":                {"1", "reserved:host=;", ReasonRange},
		"another cluster's":       {"196608", "k8s:a=b;", ReasonRange},
		"no value":                {"131072", "", ReasonMissing},
		"no cluster label":        {"131072", "k8s:a=b;", ReasonLabels},
		"another cluster's label": {"131072", "k8s:" + LabelCluster + "=cluster3;", ReasonLabels},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := DecodeIdentity(c.name, []byte(c.value), cluster2)
			if r := checkRejected(t, err); r.Reason != c.reason {
				t.Errorf("reason is %s (%v), want %s", r.Reason, err, c.reason)
			}
		})
	}
}
