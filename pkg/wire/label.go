package wire

import (
	"cmp"
	"slices"
	"strings"
)

// Sources of labels that have a meaning here.
const (
	LabelSourceUnspec     = "unspec"
	LabelSourceReserved   = "reserved"
	LabelSourceKubernetes = "k8s"
)

// LabelCluster is the key of the label that names an identity's cluster; its source is k8s.
const LabelCluster = "io.cilium.k8s.policy.cluster"

// LabelNamespace is the key of the label that names the namespace of an identity's
// pods; its source is k8s.
const LabelNamespace = "io.kubernetes.pod.namespace"

// Label is one label of an identity.
type Label struct {
	Source, Key, Value string
}

// String returns "source:key=value".
func (l Label) String() string { return l.Source + ":" + l.Key + "=" + l.Value }

// ParseLabel reads a single label: "$x" is "reserved:x", the source ends at the first colon (without one it is
// "unspec"), the key at the first "=" after it, and "reserved:=x" has the key x (wire.md §1.6). Whitespace is
// kept. The key may be empty; such labels are ignored.
func ParseLabel(text string) Label {
	l := Label{Source: LabelSourceUnspec}
	rest := text
	if after, ok := strings.CutPrefix(text, "$"); ok {
		l.Source, rest = LabelSourceReserved, after
	} else if source, after, ok := strings.Cut(text, ":"); ok {
		rest = after
		if source != "" {
			l.Source = source
		}
	}
	if after, ok := strings.CutPrefix(rest, "="); ok && l.Source == LabelSourceReserved {
		l.Key = after
		return l
	}
	l.Key, l.Value, _ = strings.Cut(rest, "=")
	return l
}

// Labels is a list of labels in the order in which they were written.
type Labels []Label

// ParseLabels reads a label string. It has no escapes, so every text can be read. Labels with an empty key are
// dropped; order and duplicates are kept (wire.md §1.6). The labels share the memory of the text.
func ParseLabels(text string) Labels {
	if text == "" {
		return nil
	}
	labels := make(Labels, 0, strings.Count(text, ";")+1)
	for piece := range strings.SplitSeq(text, ";") {
		if l := ParseLabel(piece); l.Key != "" {
			labels = append(labels, l)
		}
	}
	return labels
}

// LabelsFromMap returns the labels whose keys are written "source:key" in a map, sorted.
func LabelsFromMap(m map[string]string) Labels {
	labels := make(Labels, 0, len(m))
	for key, value := range m {
		if l := ParseLabel(key + "=" + value); l.Key != "" {
			labels = append(labels, l)
		}
	}
	slices.SortFunc(labels, func(a, b Label) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Source, b.Source))
	})
	return labels
}

// Map returns the labels as a map from "source:key" to value.
func (ls Labels) Map() map[string]string {
	m := make(map[string]string, len(ls))
	for _, l := range ls {
		m[l.Source+":"+l.Key] = l.Value
	}
	return m
}

// Get returns the first label with this bare key.
func (ls Labels) Get(key string) (Label, bool) {
	for _, l := range ls {
		if l.Key == key {
			return l, true
		}
	}
	return Label{}, false
}

// String returns the label string in the list's own order.
func (ls Labels) String() string {
	size := 0
	for _, l := range ls {
		size += len(l.Source) + len(l.Key) + len(l.Value) + 3
	}
	var b strings.Builder
	b.Grow(size)
	for _, l := range ls {
		b.WriteString(l.Source)
		b.WriteByte(':')
		b.WriteString(l.Key)
		b.WriteByte('=')
		b.WriteString(l.Value)
		b.WriteByte(';')
	}
	return b.String()
}

// Encode returns the label string that a writer writes: sorted by bare key, one label for each bare key (the
// last one given). There is no escaping: a value with a semicolon is not read back as written (wire.md §1.6).
func (ls Labels) Encode() string {
	sorted := slices.Clone(ls)
	slices.SortStableFunc(sorted, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	kept := sorted[:0]
	for _, l := range sorted {
		if n := len(kept); n > 0 && kept[n-1].Key == l.Key {
			kept[n-1] = l
			continue
		}
		kept = append(kept, l)
	}
	return kept.String()
}
