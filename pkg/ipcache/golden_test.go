package ipcache

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// player replays a recorded trace. The recording names no cluster; the identity
// does (wire.md §2.3).
type player struct {
	core *core
	last map[string]*Entry // by key and source: the claim that a deletion of that key removes
}

// do plays one operation and returns what became visible.
func (p *player) do(op string) []string {
	f := strings.Fields(op)
	if f[0] == "delete" {
		slot := f[1] + " " + f[2]
		e := p.last[slot]
		if e == nil {
			return nil
		}
		// If the earlier claim with the same key is of another cluster, it still exists, and the next deletion removes
		// it.
		delete(p.last, slot)
		if e2 := p.last[slot+" before"]; e2 != nil {
			p.last[slot] = e2
			delete(p.last, slot+" before")
		}
		return p.show(Op{Old: e})
	}
	e, err := parse(f)
	if err != nil {
		return nil
	}
	slot := f[1] + " " + f[5]
	old := p.last[slot]
	if old != nil && !old.same(e) {
		p.last[slot+" before"], old = old, nil
	}
	p.last[slot] = e
	return p.show(Op{Old: old, New: e})
}

func parse(f []string) (*Entry, error) {
	host, err := netip.ParseAddr(f[2])
	if err != nil {
		return nil, err
	}
	key, _ := strconv.Atoi(f[3])
	id, _ := strconv.Atoi(f[4])
	s := Spec{
		HostIP: host, EncryptionKey: uint8(key), Identity: uint32(id), Source: wire.ParseSource(f[5]),
		Cluster: &Claimant{ID: uint32(id) >> 16, Name: fmt.Sprint("c", id>>16)},
	}
	if f[0] == "upsert+pod" {
		s.Namespace, s.Name = "ns", "pod"
	}
	if s.Prefix, err = netip.ParsePrefix(f[1]); err == nil {
		s.Kind = KindCIDR
		return NewEntry(s), nil
	}
	addr, err := netip.ParseAddr(f[1])
	if err != nil {
		return nil, err
	}
	s.Prefix = netip.PrefixFrom(addr, addr.BitLen())
	return NewEntry(s), nil
}

func (p *player) show(op Op) []string {
	seen := len(p.core.recent.changes)
	p.core.apply(op)
	var out []string
	text := func(e *Entry) string { return fmt.Sprintf("%d/%s", e.Identity(), e.Source()) }
	host := func(e *Entry) string {
		if e == nil {
			return "<nil>"
		}
		return e.HostIP().String()
	}
	for _, ch := range p.core.recent.changes[seen:] {
		switch {
		case ch.Before == ch.After:
		case ch.After == nil:
			out = append(out, fmt.Sprintf("Delete prefix=%s old=none new=%s oldHost=%s newHost=<nil> key=%d",
				ch.Before.Prefix(), text(ch.Before), host(ch.Before), ch.Before.EncryptionKey()))
		default:
			old := "none"
			if ch.Before != nil {
				old = text(ch.Before)
			}
			out = append(out, fmt.Sprintf("Upsert prefix=%s old=%s new=%s oldHost=%s newHost=%s key=%d",
				ch.After.Prefix(), old, text(ch.After), host(ch.Before), host(ch.After), ch.After.EncryptionKey()))
		}
	}
	return out
}

// differences are the steps in which we differ on purpose from the recording, by trace and number of the step, with our
// visible changes instead.
var differences = map[string]map[int][]string{
	// design.md §1.1: every claim is kept; the lower cluster ID wins regardless of the order, and the loser's deletion
	// is invisible.
	"two clusters claim one IP: last writer wins, first deleter removes": {
		1: nil,
		2: nil,
		3: {"Delete prefix=10.0.0.1/32 old=none new=131172/clustermesh oldHost=192.168.2.1 newHost=<nil> key=0"},
	},
	// design.md §1.2: a mesh entry that a local one displaced is visible again when the local one is removed.
	"clustermesh entry is displaced by local CRD and is not restored": {
		2: {"Upsert prefix=10.0.0.1/32 old=70000/custom-resource new=131172/clustermesh oldHost=192.168.1.1 newHost=192.168.2.1 key=0"},
	},
	// Equal claims of two kinds are still two entries: the change of the winner
	// is reported, since its kind and pod changed.
	"host equal to /32 (same identity and host): silent": {
		1: {"Upsert prefix=10.0.0.1/32 old=131172/clustermesh new=131172/clustermesh oldHost=192.168.2.1 newHost=192.168.2.1 key=0"},
		2: {"Upsert prefix=10.0.0.1/32 old=131172/clustermesh new=131172/clustermesh oldHost=192.168.2.1 newHost=192.168.2.1 key=0"},
	},
	// An identical upsert is never reported again, with or without pod metadata.
	"an identical upsert without pod metadata notifies again": {1: nil},
	// Host bits are ignored: the prefix is shown without them.
	"invalid addresses": {
		3: {"Upsert prefix=10.0.0.0/24 old=none new=131172/clustermesh oldHost=<nil> newHost=192.168.2.1 key=0"},
	},
	// The mesh claim that a local entry refused is kept behind it (1 and 2). It becomes visible when the local entry is
	// removed, unless it was withdrawn before, as here.
	"local CRD entry resists clustermesh": {},
}

func TestGoldenTraces(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden/ipcache_traces.json")
	waittest.Must(t, err)
	var traces []struct {
		Name  string
		Steps []struct {
			Op     string
			Events []string `json:"listener_events"`
		}
	}
	waittest.Must(t, json.Unmarshal(data, &traces))
	played := 0
	for _, tr := range traces {
		// Cluster-annotated addresses never occur on the wire (wire.md §4.2): here claims of different clusters are
		// kept separate without them.
		if tr.Name == "cluster-annotated addresses are separate keys" {
			continue
		}
		played++
		p := &player{core: newCore(), last: map[string]*Entry{}}
		for i, step := range tr.Steps {
			want := step.Events
			if other, differs := differences[tr.Name][i]; differs {
				want = other
			}
			got := p.do(step.Op)
			if diff := cmp.Diff(append([]string{}, want...), append([]string{}, got...)); diff != "" {
				t.Errorf("%s: step %d, %s (-want +got):\n%s", tr.Name, i, step.Op, diff)
			}
		}
	}
	if played != len(traces)-1 {
		t.Errorf("%d of %d traces played", played, len(traces))
	}
}
