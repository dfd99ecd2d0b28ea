package store

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// trace is one recorded run of Cilium's own watch store.
type trace struct {
	Name   string
	Phases []struct {
		Prefix string   `json:"watched_prefix"`
		In     []string `json:"events_in"`
		Calls  []string `json:"observer_calls"`
		After  int      `json:"entries_after"`
	}
}

func traces(t *testing.T, nameBegins string) trace {
	t.Helper()
	data, err := os.ReadFile("testdata/golden/watch_traces.json")
	must(t, err)
	var all []trace
	must(t, json.Unmarshal(data, &all))
	for _, tr := range all {
		if strings.HasPrefix(tr.Name, nameBegins) {
			return tr
		}
	}
	t.Fatalf("no trace %q", nameBegins)
	return trace{}
}

// replay drives a Set with the trace and returns the changes that an observer sees, by phase.
func replay[T any](tr trace, decode Decode[T], show func(Change[T]) string) (calls [][]string, entries []int) {
	s := NewSet[T]()
	rev := int64(0)
	for _, phase := range tr.Phases {
		var seen []string
		note := func(ch Change[T]) { seen = append(seen, show(ch)) }
		if phase.Prefix == "(Drain)" {
			s.Drain()(func(ch Change[T]) bool { note(ch); return true })
		} else {
			s.Begin()
		}
		for _, event := range phase.In {
			rev++
			op, rest, _ := strings.Cut(event, " ")
			key, value, _ := strings.Cut(rest, " ")
			name := []byte(strings.TrimPrefix(key, phase.Prefix))
			switch op {
			case "listDone":
				var swept []string
				for ch := range s.Done() {
					swept = append(swept, show(ch))
				}
				slices.Sort(swept)
				seen = append(seen, swept...)
			case "delete":
				if ch, ok := s.Delete(name, rev); ok {
					note(ch)
				}
			default:
				if ch, ok, _ := s.Upsert(name, []byte(value), rev, decode); ok {
					note(ch)
				}
			}
		}
		calls, entries = append(calls, seen), append(entries, s.Len())
	}
	return calls, entries
}

// TestGoldenRelist replays the recorded relists, with one intended difference: a value that the relist contains
// unchanged is not delivered again (design.md §2.8: reconnecting with unchanged contents causes no event). The sync
// callback is a matter of the Watch, not of the Set.
func TestGoldenRelist(t *testing.T) {
	t.Parallel()
	tr := traces(t, "restartable watch")
	calls, entries := replay(tr, decodeText, func(ch Change[string]) string {
		if ch.New == nil {
			return "delete " + ch.Name
		}
		return "update " + ch.Name + " = " + *ch.New
	})
	want := make([][]string, len(tr.Phases))
	for i, phase := range tr.Phases {
		calls := slices.DeleteFunc(slices.Clone(phase.Calls), func(c string) bool { return c == "on-sync callback" })
		want[i] = calls
		if entries[i] != phase.After {
			t.Errorf("phase %d: %d entries, recorded %d", i, entries[i], phase.After)
		}
	}
	want[1] = slices.DeleteFunc(want[1], func(c string) bool { return c == "update a = 2" }) // unchanged since phase 0
	slices.Sort(want[3][1:])                                                                 // the order of a sweep is not defined
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("observer calls (-want +got):\n%s", diff)
	}
}

func TestGoldenBadUpdates(t *testing.T) {
	t.Parallel()
	tr := traces(t, "an undecodable/invalid update")
	layout, err := wire.NewLayout(255)
	must(t, err)
	expect := wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1, Layout: layout}
	calls, entries := replay(tr, func(name string, value []byte) (*wire.Node, error) {
		return wire.DecodeNode(name, value, expect)
	}, func(ch Change[wire.Node]) string {
		if ch.New == nil {
			return "delete cluster2/" + ch.Old.Name
		}
		return "update cluster2/" + ch.New.Name
	})
	for i, phase := range tr.Phases {
		if diff := cmp.Diff(append([]string{}, phase.Calls...), append([]string{}, calls[i]...)); diff != "" {
			t.Errorf("phase %d: observer calls (-recorded +got):\n%s", i, diff)
		}
		if entries[i] != phase.After {
			t.Errorf("phase %d: %d entries, recorded %d", i, entries[i], phase.After)
		}
	}
}

// TestGoldenIPWatcher replays the recorded IP watcher, with the intended differences (interface.md §2.2; design.md
// §2.3): an entry whose identity is out of the cluster's range is rejected and not counted, so its deletion withdraws
// nothing; and an entry without an address is rejected as well.
func TestGoldenIPWatcher(t *testing.T) {
	t.Parallel()
	layout, err := wire.NewLayout(255)
	must(t, err)
	expect := wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1, Layout: layout}
	for _, name := range []string{"ip watcher, direct", "ip watcher, cached"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := traces(t, name)
			calls, entries := replay(tr, func(name string, value []byte) (*wire.IP, error) {
				ip, err := wire.DecodeIP(name, value, expect)
				return &ip, err
			}, showIP)
			want := slices.DeleteFunc(slices.Clone(tr.Phases[0].Calls), func(c string) bool {
				return c == "delete ip=10.2.0.13 source=clustermesh" || c == "delete ip=<nil> source=clustermesh"
			})
			if diff := cmp.Diff(want, calls[0]); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			// The recording has 8: the 6 that we have, and .15 and .16, whose identities are out of range.
			if entries[0] != 6 {
				t.Errorf("%d entries, want 6", entries[0])
			}
		})
	}
}

func showIP(ch Change[wire.IP]) string {
	ip, verb := ch.New, "upsert"
	if ip == nil {
		ip, verb = ch.Old, "delete"
	}
	text := ip.Prefix.String()
	if ip.Host {
		text = ip.Prefix.Addr().String()
	}
	if verb == "delete" {
		return "delete ip=" + text + " source=clustermesh"
	}
	host := "<nil>"
	if ip.HostIP.IsValid() {
		host = ip.HostIP.String()
	}
	out := fmt.Sprintf("upsert ip=%s host=%s key=%d id=%d source=clustermesh", text, host, ip.EncryptionKey, ip.Identity)
	if ip.Pod == "" {
		return out + " k8s=none"
	}
	protocols := map[string]int{"TCP": 6, "UDP": 17, "SCTP": 132}
	var ports []string
	for _, p := range ip.Ports {
		ports = append(ports, fmt.Sprintf("%s=%d/%d", p.Name, p.Port, protocols[p.Protocol]))
	}
	return out + fmt.Sprintf(" ns=%s pod=%s ports=[%s]", ip.Namespace, ip.Pod, strings.Join(ports, " "))
}
