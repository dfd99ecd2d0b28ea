package resource

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// exportParts splits "CLUSTER/NAMESPACE/NAME". What is missing at its beginning is
// taken from the flags, as in pair. Nil: not such a name.
func exportParts(name string, q *client.Query) []string {
	parts := strings.Split(name, "/")
	if len(parts) < 2 {
		parts = slices.Insert(parts, 0, q.Namespace)
	}
	if len(parts) < 3 {
		parts = slices.Insert(parts, 0, q.Cluster)
	}
	if len(parts) != 3 {
		return nil
	}
	if parts[0] == q.Cluster {
		q.Cluster = ""
	}
	if parts[1] == q.Namespace {
		q.Namespace = ""
	}
	if slices.Contains(parts, "") {
		return nil
	}
	return parts
}

func exportName(e api.ServiceExport) string { return e.Cluster + "/" + e.Namespace + "/" + e.Name }

// ExportTable shows exports, with their age.
func ExportTable(since func(time.Time) time.Duration) printer.Table[api.ServiceExport] {
	return printer.Table[api.ServiceExport]{
		{Title: "NAMESPACE", Text: func(e api.ServiceExport) string { return e.Namespace }},
		{Title: "NAME", Text: func(e api.ServiceExport) string { return e.Name }},
		{Title: "CLUSTER", Text: func(e api.ServiceExport) string { return e.Cluster }},
		{Title: "TYPE", Text: func(e api.ServiceExport) string { return e.Type }},
		{Title: "AFFINITY", Text: SessionAffinityText},
		{Title: "PORTS", Text: func(e api.ServiceExport) string { return PortTexts(e.Ports) }},
		{Title: "AGE", Right: true, Text: func(e api.ServiceExport) string { return printer.Duration(since(e.Created)) }},
	}
}

// SessionAffinityText is the session affinity with its timeout.
func SessionAffinityText(e api.ServiceExport) string {
	if e.SessionAffinity != wire.SessionAffinityClientIP {
		return e.SessionAffinity
	}
	return e.SessionAffinity + " " + strconv.Itoa(e.SessionAffinityTimeoutSeconds) + "s"
}

// PortTexts lists ports as in http=80/TCP.
func PortTexts(ports []api.Port) string {
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.Itoa(int(port.Port)) + "/" + port.Protocol
		if port.Name != "" {
			texts[i] = port.Name + "=" + texts[i]
		}
	}
	return strings.Join(texts, ",")
}
