package troubleshoot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

const remedyRead = "look at the load of that etcd, and at the network on the way"

// contents checks the entries that a session can read: the session of the first endpoint that has one. The report
// gets the IDs that the cluster and its etcd state.
func (c *check) contents(ctx context.Context, endpoints []*endpoint, to *Report) []Step {
	steps := []Step{{Name: StepRights, State: OK}, {Name: StepHeartbeat, State: OK}, {Name: StepConfiguration, State: OK}}
	i := slices.IndexFunc(endpoints, func(e *endpoint) bool { return e.session != nil })
	if i < 0 {
		for i := range steps {
			steps[i].skip("not tried: there is no session with etcd")
		}
		return steps
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Timings.Read)
	defer cancel()
	r := &reader{check: c, session: endpoints[i].session}
	r.read(ctx)
	r.rights(&steps[0])
	r.heartbeat(&steps[1])
	r.configuration(&steps[2])
	if id := r.session.Status().EtcdClusterID; id != 0 {
		to.EtcdClusterID = fmt.Sprintf("%x", id)
	}
	if kv := r.heart.kv; kv != nil {
		to.EtcdMark = fmt.Sprintf("%d %s", kv.ModRevision, kv.Value)
	}
	if r.remote != nil {
		to.ClusterID, to.Cached = r.remote.ID, r.remote.Capabilities.Cached
	}
	return steps
}

type reader struct {
	*check
	session *etcd.Session

	heart, config reading
	remote        *wire.ClusterConfig // nil when it is not known
	undecoded     error               // why, although there is a value
	rest          []reading
	unwritten     []string // the canaries that an agent waits for and that do not exist
}

// reading is the result of a read of one key, or of all keys below a prefix.
type reading struct {
	what string // for people
	key  string
	kv   *kvstore.KeyValue // of a key; nil when there is none
	n    int64             // how many keys there are, -1 when that is not known
	err  error
	// optional: an agent does without the right to read it.
	optional bool
}

func (r *reader) read(ctx context.Context) {
	var at kvstore.Position
	get := func(what, key string) reading {
		kv, pos, err := r.session.Get(ctx, key)
		if err == nil {
			at = pos
		}
		return reading{what: what, key: key, kv: kv, n: -1, err: err}
	}
	r.heart = get("heartbeat", wire.HeartbeatKey)
	if !r.target.Local {
		r.config = get("cluster configuration", wire.ClusterConfigKey(r.target.Cluster))
		r.decode()
	}
	r.rest = r.prefixes()
	var all sync.WaitGroup
	for i := range r.rest {
		all.Go(func() { r.count(ctx, &r.rest[i], at) })
	}
	all.Go(func() { r.canaries(ctx) })
	all.Wait()
}

// canaries notes which of those that an agent waits for do not exist. One that cannot be read says
// nothing: that the right is missing is found when they are counted.
func (r *reader) canaries(ctx context.Context) {
	if r.remote == nil || !r.remote.Capabilities.SyncedCanaries {
		return
	}
	for _, res := range wire.Resources() {
		caps := r.remote.Capabilities
		if !caps.Exports(res) || caps.Details(res) || res.Describe().Optional {
			continue
		}
		key := wire.SyncedKey(r.target.Cluster, res, caps.Cached)
		if kv, _, err := r.session.Get(ctx, key); err == nil && kv == nil {
			r.unwritten = append(r.unwritten, key)
		}
	}
}

func (r *reader) decode() {
	if r.config.kv == nil {
		return
	}
	cfg, err := wire.DecodeClusterConfig(r.config.kv.Value)
	if err != nil {
		r.undecoded = err
		return
	}
	r.remote = &cfg
}

// prefixes are the other keys that the agent lists and watches: the configuration of a remote says which it has.
func (r *reader) prefixes() []reading {
	caps := wire.Everything()
	var list []reading
	switch {
	case r.remote != nil:
		caps = r.remote.Capabilities
		if caps.SyncedCanaries {
			list = append(list, reading{what: "canaries", key: wire.SyncedDir(r.target.Cluster)})
		}
	case !r.target.Local:
		return []reading{{what: "canaries", key: wire.SyncedDir(r.target.Cluster)}}
	}
	for _, res := range wire.Resources() {
		if caps.Exports(res) {
			list = append(list, reading{what: string(res), key: res.Prefix(r.target.Cluster, caps.Cached), optional: res.Describe().Optional})
		}
	}
	return list
}

// errEnough ends a list that has shown that it is permitted.
var errEnough = errors.New("enough")

// count reads a prefix: how many keys there are, when a position is known.
func (r *reader) count(ctx context.Context, to *reading, at kvstore.Position) {
	if at == (kvstore.Position{}) {
		to.n = -1
		_, to.err = r.session.List(ctx, to.key, func(kvstore.Page) error { return errEnough })
		if errors.Is(to.err, errEnough) {
			to.err = nil
		}
		return
	}
	past, err := r.session.Recall(ctx, to.key, "", at, 1)
	to.n, to.err = past.Count, err
}

func (r *reader) rights(s *Step) {
	readings := []reading{r.heart}
	if !r.target.Local {
		readings = append(readings, r.config)
	}
	var allowed, denied []string
	optional := "" // a prefix that an agent does without
	for _, read := range append(readings, r.rest...) {
		switch {
		case errors.Is(read.err, kvstore.ErrPermissionDenied) && read.optional:
			optional = read.key
		case errors.Is(read.err, kvstore.ErrPermissionDenied):
			denied = append(denied, read.key)
		case read.err != nil:
			s.failed(read.err, codes.ReadFails, remedyRead)
		case read.n >= 0:
			allowed = append(allowed, fmt.Sprintf("%s (%d)", read.what, read.n))
		default:
			allowed = append(allowed, read.what)
		}
	}
	if len(allowed) > 0 {
		s.found("may read " + strings.Join(allowed, ", "))
	}
	if len(denied) > 0 {
		s.tell(codes.RightsMissing, fmt.Sprintf("%s may not read %s", r.cfg.User(), strings.Join(denied, ", ")), hint.Text(kvstore.ErrPermissionDenied))
	}
	if optional != "" {
		s.tell(codes.ExportsRightsMissing, fmt.Sprintf("%s may not read %s, which an agent does not need", r.cfg.User(), optional), hint.Text(kvstore.ErrPermissionDenied))
	}
	if r.heart.err == nil && errors.Is(r.config.err, kvstore.ErrPermissionDenied) {
		// A reader from outside may read the configuration of the etcd's own
		// cluster and of no other (spec wire.md §0).
		s.tell(codes.EtcdOfOther, "this may be the etcd of another cluster than "+r.target.Cluster, remotecluster.WhoseEtcd)
	}
	if r.remote == nil && !r.target.Local {
		s.found("where its data is follows from its cluster configuration, which is not known")
	}
}

func (r *reader) heartbeat(s *Step) {
	if r.heart.err != nil {
		s.after(StepRights)
		return
	}
	h := HeartbeatOf(r.heart.kv, r.o.Now)
	switch {
	case h.Age != nil:
		s.found(fmt.Sprintf("written at %s, %s ago by the clock here", h.Written, printer.Duration(*h.Age)))
	case h.Written != "":
		s.found(fmt.Sprintf("it exists, but contains no time: %q", h.Written))
	}
	if h.Cause != "" {
		s.tell(h.Code, h.Cause, h.Remedy)
	}
}

func (r *reader) configuration(s *Step) {
	key := wire.ClusterConfigKey(r.target.Cluster)
	switch {
	case r.target.Local:
		s.skip("the own cluster needs none")
	case r.config.err != nil:
		s.after(StepRights)
	case r.config.kv == nil:
		s.tell(codes.ConfigurationMissing, "there is no key "+key, remotecluster.WhoseEtcd)
	case r.undecoded != nil:
		s.tell(codes.ConfigurationUnreadable, fmt.Sprintf("the value of %s cannot be read as a cluster configuration: %v", key, r.undecoded), remotecluster.CheckWriter)
	default:
		s.found(fmt.Sprintf("ID %d, %s", r.remote.ID, r.remote.Encode()))
		r.validate(s)
		if len(r.unwritten) > 0 {
			s.tell(codes.CanaryMissing, "the cluster has not written everything yet: there is no "+strings.Join(r.unwritten, ", "), remotecluster.WriterRuns)
		}
	}
}

// validate reports whether the own cluster can work with the remote.
func (r *reader) validate(s *Step) {
	own := r.o.Own
	if err := r.remote.Validate(own); err != nil {
		code := codes.ConfigurationInvalid
		if errors.Is(err, wire.ErrMaxConnectedClusters) {
			code = codes.MaxClustersDiffer
		}
		s.tell(code, err.Error(), "cluster IDs and --max-connected-clusters must fit in all clusters of a mesh: correct them here or there")
	}
	if own.ID != 0 && r.remote.ID == own.ID && r.target.Cluster != own.Name {
		conflict := &remotecluster.IDConflict{ID: own.ID, Holder: own.Name, Own: true}
		cause, remedy, _ := strings.Cut(conflict.Error(), ": ")
		s.tell(codes.ClusterIDConflict, cause, remedy)
	}
}

// Heartbeat is the result of one read of the heartbeat key. A running agent sees each write of it; a single read
// shows only the value.
type Heartbeat struct {
	// Written is the value.
	Written string
	// Age is by the clock of its writer and the one of this machine; nil when the
	// value is not a time.
	Age *time.Duration
	// Code, Cause and Remedy describe the problem and the remedy, all empty when there is no problem.
	Code          codes.Code
	Cause, Remedy string
}

// HeartbeatOf judges the heartbeat key, which is nil when there is none.
func HeartbeatOf(kv *kvstore.KeyValue, now time.Time) Heartbeat {
	if kv == nil {
		return Heartbeat{
			Code:   codes.HeartbeatAbsent,
			Cause:  fmt.Sprintf("there is no heartbeat %s: no clustermesh-apiserver or operator writes the state of this cluster", wire.HeartbeatKey),
			Remedy: remotecluster.WriterRuns,
		}
	}
	h := Heartbeat{Written: string(kv.Value)}
	written, err := time.Parse(time.RFC3339, h.Written)
	if err != nil {
		return h
	}
	age := now.Sub(written)
	h.Age = &age
	limit := etcd.DefaultTimings().HeartbeatLimit
	switch {
	case age > limit:
		h.Code = codes.HeartbeatOld
		h.Cause = fmt.Sprintf("the heartbeat is %s old: the cluster's writer may be gone, or a clock is wrong", printer.Duration(age))
		h.Remedy = remotecluster.WriterRuns
	case age < -limit:
		h.Code = codes.HeartbeatAhead
		h.Cause = fmt.Sprintf("the heartbeat is from %s ahead: a clock is wrong, there or here", printer.Duration(-age))
		h.Remedy = "set the clocks: certificates are judged by them too"
	}
	return h
}
