package wire

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Reason is why an entry was rejected. The set is closed, so that it may label a metric.
type Reason string

// The reasons.
const (
	// ReasonMalformed: not JSON, zstd or protobuf of the expected shape, or a
	// number outside its field's range.
	ReasonMalformed Reason = "malformed"
	// ReasonMissing: a required field or the value itself is absent or empty.
	ReasonMissing Reason = "missing"
	// ReasonKey: the key cannot be read, or the value does not belong under it.
	ReasonKey Reason = "key"
	// ReasonCluster: the value names another cluster.
	ReasonCluster Reason = "cluster"
	// ReasonClusterID: the value carries an impossible or another cluster ID.
	ReasonClusterID Reason = "cluster-id"
	// ReasonRange: the numeric identity does not belong to the cluster.
	ReasonRange Reason = "range"
	// ReasonLabels: the labels do not belong to the cluster.
	ReasonLabels Reason = "labels"
	// ReasonAddress: an IP address or prefix cannot be read or used.
	ReasonAddress Reason = "address"
	// ReasonValue: a field has a value that is not allowed.
	ReasonValue Reason = "value"
	// ReasonName: a name or another text breaks the rule that it has in Kubernetes (names.go).
	ReasonName Reason = "name"
	// ReasonTooLarge: the entry is beyond a bound, or would take much more memory
	// than it has bytes.
	ReasonTooLarge Reason = "too-large"
	// ReasonBudget: the entry exceeds the budget of its cluster (pkg/budget).
	ReasonBudget Reason = "budget"
	// ReasonPolicy: the policy file does not grant the cluster what the entry claims.
	ReasonPolicy Reason = "policy"
)

// RejectError is the error of every Decode function that reads an entry.
type RejectError struct {
	Reason Reason
	Err    error
}

// maxErrorText bounds the text of a RejectError, which quotes texts of a remote.
const maxErrorText = 512

// Error returns the reason and the cause, in a text of bounded length. The caller has to add the key.
func (e *RejectError) Error() string {
	text := string(e.Reason) + ": " + e.Err.Error()
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
	}
	return text
}

// Unwrap returns the cause.
func (e *RejectError) Unwrap() error { return e.Err }

// reject makes a RejectError with a formatted cause.
func reject(reason Reason, format string, args ...any) error {
	return &RejectError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// rejectDecode wraps the error of a decoding library.
func rejectDecode(err error) error {
	if rejected, ok := errors.AsType[*RejectError](err); ok {
		return rejected // our own error, passed on by the library
	}
	reason := ReasonMalformed
	if parse := (*net.ParseError)(nil); errors.As(err, &parse) {
		reason = ReasonAddress
	}
	return &RejectError{Reason: reason, Err: err}
}

// Expect has the values that an entry read from a cluster must agree with.
type Expect struct {
	// Cluster is the cluster's name.
	Cluster string
	// ClusterID is its ID according to its configuration; 0 means
	// that entries' IDs (and identities' ranges) are not compared with it.
	ClusterID uint32
	// LocalID is the reader's own cluster ID. An entry that carries it skips
	// the test of the range of IDs, and then fails the comparison (wire.md §1.2).
	LocalID uint32
	// Layout divides the numeric identities and limits cluster IDs. Its zero
	// value is the layout for 255 clusters.
	Layout Layout
	// Own: the cluster is the reader's own, read from its kvstore. ClusterID is then compared even when it is
	// 0, which is no mesh, and identities need not name their cluster. The other rules are only for remotes.
	Own bool
}

// compares reports whether entries must carry ClusterID.
func (e Expect) compares() bool { return e.ClusterID != 0 || e.Own }

// validID applies the test of the range of cluster IDs.
func (e Expect) validID(id uint32) error {
	if id == e.LocalID && (id != 0 || e.Own) {
		return nil
	}
	if err := e.Layout.ValidateClusterID(id); err != nil {
		return &RejectError{Reason: ReasonClusterID, Err: err}
	}
	return nil
}

// sameCluster compares the name of the cluster.
func (e Expect) sameCluster(cluster string) error {
	if cluster != e.Cluster {
		return reject(ReasonCluster, "unexpected cluster name: got %s, expected %s", cluster, e.Cluster)
	}
	return nil
}

// sameID compares the ID of the cluster.
func (e Expect) sameID(id uint32) error {
	if e.compares() && id != e.ClusterID {
		return reject(ReasonClusterID, "unexpected cluster ID: got %d, expected %d", id, e.ClusterID)
	}
	return nil
}

// sameNamespacedName compares namespace and name with the key's name.
func sameNamespacedName(namespace, entry, name string) error {
	if len(name) == len(namespace)+1+len(entry) && name[:len(namespace)] == namespace &&
		name[len(namespace)] == '/' && name[len(namespace)+1:] == entry {
		return nil
	}
	return reject(ReasonKey, "namespaced name does not match key: got %s/%s, expected %s", namespace, entry, name)
}

// required rejects an entry with an empty field; pairs are name, value.
func required(pairs ...[2]string) error {
	for _, p := range pairs {
		if p[1] == "" {
			return reject(ReasonMissing, "%s is unset", p[0])
		}
	}
	return nil
}
