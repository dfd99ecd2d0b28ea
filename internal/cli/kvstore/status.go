package kvstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/troubleshoot"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// KvStatus is the status of a kvstore at one moment.
type KvStatus struct {
	Name       string       `json:"name"`
	ConfigFile string       `json:"configFile,omitempty"`
	Endpoints  []kvEndpoint `json:"endpoints"`
	Heartbeat  *kvHeartbeat `json:"heartbeat"` // null when there is none, or no endpoint answers
	Problems   []string     `json:"problems"`
}

// kvEndpoint is one endpoint. Without a connection only Endpoint and Error are known.
type kvEndpoint struct {
	Endpoint      string   `json:"endpoint"`
	Connected     bool     `json:"connected"`
	Error         string   `json:"error,omitempty"`
	EtcdClusterID string   `json:"etcdClusterID,omitempty"` // in hexadecimal
	Version       string   `json:"version,omitempty"`
	Leader        bool     `json:"leader"`
	DBSizeBytes   int64    `json:"dbSizeBytes,omitempty"`
	DBInUseBytes  int64    `json:"dbInUseBytes,omitempty"`
	DBQuotaBytes  int64    `json:"dbQuotaBytes,omitempty"` // 0 when etcd does not report it
	Revision      int64    `json:"revision,omitempty"`
	Alarms        []string `json:"alarms,omitempty"`
}

// kvHeartbeat is the heartbeat key. Its age is computed from the clocks of its writer and of this machine; null when
// the value is not a time.
type kvHeartbeat struct {
	Written    string   `json:"written"`
	AgeSeconds *float64 `json:"ageSeconds"`
}

func kvStatusCommand(c *command.Env, k *target.Choice) *cobra.Command {
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	return command.WithOutput(&cobra.Command{
		Use:   "status",
		Short: "Show each endpoint of a kvstore, its heartbeat, and its problems",
		Args:  command.NoArgs,
		RunE: target.Asking(c, k, func(cmd *cobra.Command, _ []string, t *target.Target) error {
			st, reached := status(t, cmd.Context(), c.Now)
			return exit.Verdict(c.Answer(cmd, format, st, st.page), !reached, len(st.Problems) > 0)
		}),
	}, format)
}

// status sends a request to every endpoint, one after another.
func status(t *target.Target, ctx context.Context, now func() time.Time) (st *KvStatus, reached bool) {
	st = &KvStatus{Name: t.Name, ConfigFile: t.Cfg.Path, Endpoints: []kvEndpoint{}, Problems: []string{}}
	for attempt, url := range t.Cfg.Endpoints {
		client, err := t.Opts.Open(ctx, t.Cfg, attempt)
		if err != nil {
			st.Endpoints = append(st.Endpoints, kvEndpoint{Endpoint: url, Error: printer.OneLine(err)})
			st.Problems = append(st.Problems, withCode(err))
			continue
		}
		s := client.Status()
		st.Endpoints = append(st.Endpoints, kvEndpoint{
			Endpoint: url, Connected: true, Error: s.Server.Error, EtcdClusterID: strconv.FormatUint(s.EtcdClusterID, 16),
			Version: s.Server.Version, Leader: s.Server.Leader, DBSizeBytes: s.Server.DBSize, DBInUseBytes: s.Server.DBInUse, DBQuotaBytes: s.Server.DBQuota, Revision: s.Head.Revision, Alarms: s.Server.Alarms,
		})
		for _, alarm := range s.Server.Alarms {
			st.Problems = append(st.Problems, fmt.Sprintf("%s: alarm: %s [%s]", url, alarm, codes.EtcdAlarm))
		}
		if !reached {
			st.readHeartbeat(ctx, client, now)
		}
		reached = true
		client.Close()
	}
	return st, reached
}

// readHeartbeat checks the heartbeat by the time in its value, because a single read cannot see when it is written.
func (st *KvStatus) readHeartbeat(ctx context.Context, client kvstore.Client, now func() time.Time) {
	problem := func(format string, args ...any) { st.Problems = append(st.Problems, fmt.Sprintf(format, args...)) }
	kv, _, err := client.Get(ctx, wire.HeartbeatKey)
	if err != nil {
		problem("%s", withCode(err))
		return
	}
	h := troubleshoot.HeartbeatOf(kv, now())
	if h.Cause != "" {
		problem("%s [%s]; %s", h.Cause, h.Code, h.Remedy)
	}
	if kv == nil {
		return
	}
	st.Heartbeat = &kvHeartbeat{Written: h.Written}
	if h.Age != nil {
		st.Heartbeat.AgeSeconds = new(h.Age.Seconds())
	}
}

// withCode returns an error on one line, with its code if it has one.
func withCode(err error) string {
	text := printer.OneLine(err)
	if code := hint.Code(err); code != "" {
		text += " [" + string(code) + "]"
	}
	return text
}

func (st *KvStatus) page(p *printer.Page) {
	verdict := printer.Painted{Text: "well", Color: printer.Green}
	if len(st.Problems) > 0 {
		verdict = printer.Painted{Text: printer.Count(len(st.Problems), "problem"), Color: printer.Red}
	}
	p.Line("%s: %s", st.Name, verdict)
	for _, problem := range st.Problems {
		p.Line("  %s", problem)
	}
	p.Blank()
	p.Fields(printer.F("Client file", st.ConfigFile), printer.F("Heartbeat", st.Heartbeat.text()))
	p.Blank()
	printer.Rows(p, printer.Table[kvEndpoint]{
		{Title: "ENDPOINT", Text: func(e kvEndpoint) string { return e.Endpoint }},
		{
			Title: "CONNECTED", Text: func(e kvEndpoint) string { return printer.YesNo(e.Connected) },
			Color: func(e kvEndpoint) printer.Color { return printer.WellColor(e.Connected) },
		},
		{Title: "ETCD CLUSTER ID", Text: func(e kvEndpoint) string { return e.EtcdClusterID }},
		{Title: "VERSION", Text: func(e kvEndpoint) string { return e.Version }},
		{Title: "LEADER", Text: func(e kvEndpoint) string {
			if e.Version == "" {
				return ""
			}
			return printer.YesNo(e.Leader)
		}},
		{Title: "REVISION", Right: true, Text: func(e kvEndpoint) string {
			if !e.Connected {
				return ""
			}
			return strconv.FormatInt(e.Revision, 10)
		}},
		{Title: "SIZE", Right: true, Text: func(e kvEndpoint) string {
			if e.DBSizeBytes == 0 {
				return ""
			}
			return fmt.Sprintf("%.1f MiB", float64(e.DBSizeBytes)/(1<<20))
		}},
	}, st.Endpoints)
}

func (h *kvHeartbeat) text() string {
	switch {
	case h == nil:
		return ""
	case h.AgeSeconds == nil:
		return h.Written
	default:
		return fmt.Sprintf("%s (%s ago)", h.Written, printer.Seconds(*h.AgeSeconds))
	}
}
