package troubleshoot

import (
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Heartbeat is what one read of the heartbeat key tells. A running agent sees it
// being written; who looks once has only what is written in it.
type Heartbeat struct {
	// Written is the value.
	Written string
	// Age is by the clock of its writer and the one of this machine; nil when the
	// value is not a time.
	Age *time.Duration
	// Code, Cause and Remedy say what is wrong and what to do, all empty when
	// nothing is.
	Code          codes.Code
	Cause, Remedy string
}

// HeartbeatOf judges the heartbeat key, which is nil when there is none.
func HeartbeatOf(kv *kvstore.KeyValue, now time.Time) Heartbeat {
	if kv == nil {
		return Heartbeat{
			Code:   codes.HeartbeatAbsent,
			Cause:  fmt.Sprintf("there is no heartbeat %s: nobody writes this cluster's state", wire.HeartbeatKey),
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
