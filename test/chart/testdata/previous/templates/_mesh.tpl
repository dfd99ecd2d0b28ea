{{/* The mesh directory: one client file for each remote cluster, and their certificates. */}}

{{- define "mesh-agent.meshMount" -}}
# The same path as in Cilium's {{ eq .mode "mirror" | ternary "KVStoreMesh" "agents" }}: the client files name their certificates by it.
- name: clustermesh
  mountPath: /var/lib/cilium/clustermesh
  readOnly: true
{{- end }}

{{/* Of a mirror, which reads the remote clusters themselves. */}}
{{- define "mesh-agent.mirrorVolume" -}}
# The mesh directory, put together as for KVStoreMesh. What `cilium clustermesh connect` changes later comes within a
# minute or two, without a restart.
- name: clustermesh
  projected:
    # For the owner alone; fsGroup adds the group.
    defaultMode: 0400
    sources:
    # One client file for each remote cluster, named as the cluster, with certificates of its own if it has any.
    - secret:
        name: {{ include "mesh-agent.string" .root.Values.mirror.clustersSecret }}
        optional: true
    {{- with .root.Values.meshDirectory.remoteCertSecret }}
    # The certificate that most client files name: good for the kvstores of remote clusters.
    {{- include "mesh-agent.certificate" (dict "secret" . "as" "common-etcd-client") | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Of agents, and of operators that read remote clusters. */}}
{{- define "mesh-agent.meshVolume" -}}
{{- $mesh := .root.Values.meshDirectory -}}
# The mesh directory, put together as for Cilium's agents. Everything is optional: a node without remote clusters
# is ready, too. What `cilium clustermesh connect` changes later comes within a minute or two, without a restart.
- name: clustermesh
  projected:
    # For the owner alone; fsGroup adds the group.
    defaultMode: 0400
    sources:
    # One client file for each remote cluster, named as the cluster, with certificates of its own if it has any.
    # No items: they would have to name the clusters.
    - secret:
        name: {{ include "mesh-agent.string" $mesh.clustersSecret }}
        optional: true
    {{- with $mesh.remoteCertSecret }}
    # The certificate that most client files name: good for the kvstores of remote clusters...
    {{- include "mesh-agent.certificate" (dict "secret" . "as" "common-etcd-client") | nindent 4 }}
    {{- end }}
    {{- with $mesh.localCertSecret }}
    # ...and, with KVStoreMesh, for their copies in the cluster's own.
    {{- include "mesh-agent.certificate" (dict "secret" . "as" "local-etcd-client") | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "mesh-agent.certificate" -}}
- secret:
    name: {{ include "mesh-agent.string" .secret }}
    optional: true
    items:
    - key: tls.crt
      path: {{ .as }}.crt
    - key: tls.key
      path: {{ .as }}.key
    - key: ca.crt
      path: {{ .as }}-ca.crt
{{- end }}
