{{/* The cluster's own etcd: its client file and the certificate of one user. "user" is the user. */}}

{{- define "mesh-agent.etcdClientOption" -}}
etcd.config=/var/lib/etcd-config/etcd.config
{{- end }}

{{- define "mesh-agent.etcdClientFlag" -}}
--kvstore-opt={{ include "mesh-agent.etcdClientOption" nil }}
{{- end }}

{{- define "mesh-agent.etcdMounts" -}}
- name: etcd-config
  mountPath: /var/lib/etcd-config
  readOnly: true
# The same path as in Cilium's agents, because the client file contains it.
- name: etcd-secrets
  mountPath: /var/lib/etcd-secrets
  readOnly: true
{{- end }}

{{- define "mesh-agent.etcdVolumes" -}}
{{- $user := .user -}}
{{- if eq $user "node" -}}
# The client file of the cluster's own etcd, as for Cilium's agents, and the certificate of the etcd user "node". This
# user can write nodes, addresses and identities (docs/rights.md). Do not use root's certificate.
{{- else if ne $user "root" -}}
# The client file of the cluster's own etcd, as for Cilium's agents, and the certificate of the etcd user "{{ $user }}"
# (docs/rights.md). Do not use root's certificate: only deploy/etcd-users.yaml needs it.
{{- end }}
- name: etcd-config
  configMap:
    name: {{ include "mesh-agent.etcdConfigMap" . }}
    items:
    - key: etcd-config
      path: etcd.config
- name: etcd-secrets
  secret:
    secretName: {{ include "mesh-agent.string" (index .root.Values.etcd.secrets $user) }}
    {{- if ne $user "root" }}
    # An etcd without TLS needs no certificates.
    optional: true
    {{- end }}
    # Only the owner can read them; `fsGroup` adds the group.
    defaultMode: 0400
    # The names of the files in Cilium's client file.
    items:
    - key: tls.crt
      path: etcd-client.crt
    - key: tls.key
      path: etcd-client.key
    - key: ca.crt
      path: etcd-client-ca.crt
{{- end }}

{{/* Where the client file is: the chart's own, one more for the job that runs before it, or one that is there. */}}
{{- define "mesh-agent.etcdConfigMap" -}}
{{- if not .root.Values.etcd.endpoints -}}
{{ include "mesh-agent.string" .root.Values.etcd.configMap }}
{{- else if eq .user "root" -}}
{{ .root.Values.name }}-etcd-users
{{- else -}}
{{ .root.Values.name }}-etcd
{{- end }}
{{- end }}

{{/* The client file that the values describe. */}}
{{- define "mesh-agent.etcdClientFile" -}}
endpoints:
{{- $tls := false }}
{{- range .Values.etcd.endpoints }}
{{- if hasPrefix "https://" . }}{{ $tls = true }}{{ end }}
- {{ toJson . }}
{{- end }}
{{- if $tls }}
trusted-ca-file: /var/lib/etcd-secrets/etcd-client-ca.crt
cert-file: /var/lib/etcd-secrets/etcd-client.crt
key-file: /var/lib/etcd-secrets/etcd-client.key
{{- end }}
{{- end }}
