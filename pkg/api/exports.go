package api

import (
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
	return inTable(&resource[*services.Export, ServiceExport]{
		name: view.ServiceExports, summary: "What clusters say of the services that they export through the MCS API.",
		filters: []string{byCluster, byNamespace, byName},
		fixed: func(q *query, e *services.Export) bool {
			return passes(q.cluster, e.Cluster) && passes(q.namespace, e.Namespace) && passes(q.name, e.Name)
		},
		convert: func(_ *Server, _ *view.Snapshot, e *services.Export) ServiceExport { return toServiceExport(e) },
		paths:   []string{"/{cluster}/{namespace}/{name}"},
		missing: "cluster %[1]q exports no service %[3]q in namespace %[2]q through the MCS API",
	}, func(v *view.View) statedb.Table[*services.Export] { return v.ServiceExports },
		func(key string) (statedb.Query[*services.Export], error) {
			parts := strings.SplitN(key, "/", 3)
			if len(parts) != 3 {
				return statedb.Query[*services.Export]{}, errCursor()
			}
			return services.ExportByKey(parts[0], parts[1], parts[2]), nil
		})
}

func toServiceExport(e *services.Export) ServiceExport {
	return ServiceExport{
		Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name, Type: e.Type,
		SessionAffinity: e.Affinity, SessionAffinityTimeoutSeconds: int(e.Timeout / time.Second),
		Ports: toPorts(e.Ports), Created: e.Created,
	}
}
