//go:build !before1.17

package main

import (
	mcstypes "github.com/cilium/cilium/pkg/clustermesh/mcsapi/types"
	"github.com/cilium/cilium/pkg/kvstore/store"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func serviceExports() kind {
	return kind{
		name:   model.ServiceExports,
		prefix: mcstypes.ServiceExportStorePrefix,
		encode: func(o *model.Objects) []store.Key { return newKeys(o.ServiceExports, newServiceExport) },
		creator: func(e model.Expect) store.KeyCreator {
			return mcstypes.KeyCreator(mcstypes.ClusterNameValidator(e.Cluster), mcstypes.NamespacedNameValidator())
		},
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			s := &key.(*mcstypes.ValidatingMCSAPIServiceSpec).MCSAPIServiceSpec
			into.ServiceExports = append(into.ServiceExports, modelServiceExport(s))
			return nil
		},
	}
}

func newServiceExport(e model.ServiceExport) *mcstypes.MCSAPIServiceSpec {
	export := &mcstypes.MCSAPIServiceSpec{
		Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name,
		ExportCreationTimestamp: metav1.NewTime(e.Created),
		Type:                    serviceImportType(e.Type),
		SessionAffinity:         corev1.ServiceAffinity(e.SessionAffinity),
	}
	setExportLabels(export, e)
	setExportPolicies(export, e)
	if e.AffinityTimeout != nil {
		export.SessionAffinityConfig = &corev1.SessionAffinityConfig{
			ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: e.AffinityTimeout},
		}
	}
	for _, p := range e.Ports {
		export.Ports = append(export.Ports, servicePort{
			Name: p.Name, Protocol: corev1.Protocol(p.Protocol), AppProtocol: p.AppProtocol, Port: p.Port,
		})
	}
	return export
}

func modelServiceExport(e *mcstypes.MCSAPIServiceSpec) model.ServiceExport {
	export := model.ServiceExport{
		Cluster: e.Cluster, Namespace: e.Namespace, Name: e.Name,
		Created:         e.ExportCreationTimestamp.UTC(),
		Type:            string(e.Type),
		SessionAffinity: string(e.SessionAffinity),
	}
	modelExportLabels(e, &export)
	modelExportPolicies(e, &export)
	if c := e.SessionAffinityConfig; c != nil && c.ClientIP != nil {
		export.AffinityTimeout = c.ClientIP.TimeoutSeconds
	}
	for _, p := range e.Ports {
		export.Ports = append(export.Ports, model.ServicePort{
			Name: p.Name, Protocol: string(p.Protocol), AppProtocol: p.AppProtocol, Port: p.Port,
		})
	}
	return export
}
