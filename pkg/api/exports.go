package api

import (
	"iter"
	"strings"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// ServiceExport is what a cluster says of a service that it exports through the MCS
// API.
type ServiceExport struct {
	Cluster                       string    `json:"cluster"`
	Namespace                     string    `json:"namespace"`
	Name                          string    `json:"name"`
	Type                          string    `json:"type" enum:"ClusterSetIP,Headless"`
	SessionAffinity               string    `json:"sessionAffinity" enum:"None,ClientIP"`
	SessionAffinityTimeoutSeconds int       `json:"sessionAffinityTimeoutSeconds" doc:"0 without affinity."`
	Ports                         []Port    `json:"ports" doc:"Of the service."`
	Created                       time.Time `json:"created" doc:"Of exports that disagree the oldest counts."`
}

func exportResource() *resource[*services.Export, ServiceExport] {
	return &resource[*services.Export, ServiceExport]{
		name: view.ServiceExports, summary: "What clusters say of the services that they export through the MCS API.",
		filters: []string{byCluster, byNamespace, byName},
		from: func(s *Server, v *view.Snapshot, q *query) (iter.Seq[*services.Export], error) {
			parts := strings.SplitN(q.after, "/", 3)
			if q.after != "" && len(parts) != 3 {
				return nil, errCursor()
			}
			query := func() statedb.Query[*services.Export] { return services.ExportByKey(parts[0], parts[1], parts[2]) }
			return after(s.View.ServiceExports, v.Txn, q.after, (*services.Export).Key, query), nil
		},
		fixed: func(q *query, e *services.Export) bool {
			return passes(q.cluster, e.Cluster) && passes(q.namespace, e.Namespace) && passes(q.name, e.Name)
		},
		convert:  func(_ *Server, _ *view.Snapshot, e *services.Export) ServiceExport { return toServiceExport(e) },
		onePaths: []string{"/{cluster}/{namespace}/{name}"},
		one: func(s *Server, v *view.Snapshot, path func(string) string) (*services.Export, error) {
			e, _, found := s.View.ServiceExports.Get(v.Txn, services.ExportByKey(path("cluster"), path("namespace"), path("name")))
			if !found {
				return nil, notFound("cluster %q exports no service %q in namespace %q through the MCS API", path("cluster"), path("name"), path("namespace"))
			}
			return e, nil
		},
	}
}

func toServiceExport(e *services.Export) ServiceExport {
	return ServiceExport{
		Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name, Type: e.Type,
		SessionAffinity: e.Affinity, SessionAffinityTimeoutSeconds: int(e.Timeout / time.Second),
		Ports: toPorts(e.Ports), Created: e.Created,
	}
}
