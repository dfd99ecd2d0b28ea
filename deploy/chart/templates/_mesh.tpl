{{/* The mesh directory: one client file for each remote cluster, and their certificates. */}}

{{- define "mesh-agent.meshMount" -}}
# The same path as in Cilium's {{ eq .mode "mirror" | ternary "KVStoreMesh" "agents" }}, because the client files contain
# it.
- name: clustermesh
  mountPath: /var/lib/cilium/clustermesh
  readOnly: true
{{- end }}

{{/* Of a mirror, which reads the remote clusters themselves. */}}
{{- define "mesh-agent.mirrorVolume" -}}
# The mesh directory, from the same Secrets as that of KVStoreMesh. Changes of `cilium clustermesh connect` take effect
# within two minutes, without a restart.
- name: clustermesh
  projected:
    # Only the owner can read them; `fsGroup` adds the group.
    defaultMode: 0400
    sources:
    # A client file for each remote cluster, with the name of the cluster, and its certificates if it has its own. There
    # are no items, because they would have to list the clusters.
    - secret:
        name: {{ include "mesh-agent.string" .root.Values.mirror.clustersSecret }}
        optional: true
    {{- with .root.Values.meshDirectory.remoteCertSecret }}
    # The certificate of most client files, for the etcd of remote clusters.
    {{- include "mesh-agent.certificate" (dict "secret" . "as" "common-etcd-client") | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Of agents, and of operators that read remote clusters. */}}
{{- define "mesh-agent.meshVolume" -}}
{{- $mesh := .root.Values.meshDirectory -}}
# The mesh directory, from the same Secrets as that of Cilium's agents. All are optional, so a node without remote
# clusters is ready too. Changes of `cilium clustermesh connect` take effect within two minutes, without a restart.
- name: clustermesh
  projected:
    # Only the owner can read them; `fsGroup` adds the group.
    defaultMode: 0400
    sources:
    # A client file for each remote cluster, with the name of the cluster, and its certificates if it has its own. There
    # are no items, because they would have to list the clusters.
    - secret:
        name: {{ include "mesh-agent.string" $mesh.clustersSecret }}
        optional: true
    {{- with $mesh.remoteCertSecret }}
    # The certificate of most client files, for the etcd of remote clusters.
    {{- include "mesh-agent.certificate" (dict "secret" . "as" "common-etcd-client") | nindent 4 }}
    {{- end }}
    {{- with $mesh.localCertSecret }}
    # With KVStoreMesh: the certificate for the copies in the own etcd.
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
