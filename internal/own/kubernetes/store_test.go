package kubernetes

import (
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// tables are empty ones.
func tables(t interface{ Fatal(...any) }) *local.Cluster {
	c, err := local.New(statedb.New())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// labelled is a service with a label; all else of it moves.
func labelled(name, label string, moved int) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: strconv.Itoa(moved), Labels: map[string]string{"l": label},
	}}
}

// TestTheTableIsWhatWasSaid: for any events in any batches, the table in the end has the last state from the API
// server, and changes no more often than necessary.
func TestTheTableIsWhatWasSaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		objects := tables(t).Services
		b := newBatches(objects, typed(stripService), func(time.Time) {}, slog.New(slog.DiscardHandler))
		said := map[string]string{} // label by name
		name, label := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"1", "2"})
		moved := 0
		check := func(t *rapid.T) {
			shown := map[string]string{}
			for s := range objects.Table().All(objects.Snapshot()) {
				shown[s.Name] = s.Labels["l"]
			}
			if !maps.Equal(shown, said) {
				t.Fatalf("the table has %v, said was %v", shown, said)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"update": func(t *rapid.T) {
				n, l := name.Draw(t, "name"), label.Draw(t, "label")
				moved++
				_ = b.Update(labelled(n, l, moved))
				said[n] = l
			},
			"delete": func(t *rapid.T) {
				n := name.Draw(t, "name")
				_ = b.Delete(labelled(n, "", 0))
				delete(said, n)
			},
			"apply": func(t *rapid.T) {
				b.flush()
				check(t)
				before := objects.Table().Revision(objects.Snapshot())
				for n, l := range said { // once more, with nothing new
					moved++
					_ = b.Update(labelled(n, l, moved))
				}
				b.flush()
				if after := objects.Table().Revision(objects.Snapshot()); after != before {
					t.Fatalf("the table moved from %d to %d by nothing", before, after)
				}
			},
			"list": func(t *rapid.T) {
				names := rapid.SliceOfDistinct(name, rapid.ID).Draw(t, "names")
				clear(said)
				var list []any
				for _, n := range names {
					moved++
					said[n] = label.Draw(t, "label")
					list = append(list, labelled(n, said[n], moved))
				}
				_ = b.Replace(list, "")
				check(t)
			},
		})
	})
}

func TestWhatIsPendingIsBounded(t *testing.T) {
	t.Parallel()
	objects := tables(t).Services
	b := newBatches(objects, typed(stripService), func(time.Time) {}, slog.New(slog.DiscardHandler))
	for i := range maxPending { // no goroutine runs it
		_ = b.Update(labelled(strconv.Itoa(i), "1", i))
	}
	if n := objects.Len(); n != maxPending || len(b.pending) != 0 {
		t.Errorf("%d applied, %d pending", n, len(b.pending))
	}
}

func TestAnObjectThatCannotBeReadKeepsWhatItWasUntilTheNextList(t *testing.T) {
	t.Parallel()
	objects := tables(t).Services
	b := newBatches(objects, typed(stripService), func(time.Time) {}, slog.New(slog.DiscardHandler))
	names := func() (all []string) {
		b.flush()
		for s := range objects.Table().All(objects.Snapshot()) {
			all = append(all, s.Name)
		}
		return all
	}
	bad := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	_ = b.Replace([]any{labelled("a", "1", 1), labelled("b", "1", 1)}, "")
	_ = b.Update(bad)
	if got := names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after an event: %v", got)
	}
	_ = b.Replace([]any{bad, labelled("b", "1", 1)}, "")
	if got := names(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("after a list: %v", got)
	}
}
