{{/* What the pods of all modes have in common. Each helper takes "root" and "mode". */}}

{{- define "mesh-agent.network" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
{{- if $values.hostNetwork -}}
{{- if eq .mode "agent" -}}
# The network of the node: the connection to remote clusters must not depend on the mesh that the agent observes.
# 127.0.0.1 is that of the node.
hostNetwork: true
# A pod in the node's network uses the node's DNS by default, which does not know clustermesh-apiserver.kube-system.svc.
# Client files contain the addresses of names such as cluster2.mesh.cilium.io (cilium-host-aliases). If an older Cilium
# did not write them, copy the `hostAliases` of its DaemonSet here.
{{- else -}}
# The network of the node: the connection to etcd must not depend on the published data.
hostNetwork: true
# A pod in the node's network uses the node's DNS by default, which does not know the names of Services.
{{- end }}
dnsPolicy: ClusterFirstWithHostNet
{{- else -}}
# The pod has its own network, where NetworkPolicies apply.
dnsPolicy: ClusterFirst
{{- end }}
{{- with $values.hostAliases }}
hostAliases:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* Where the pods may be. */}}
{{- define "mesh-agent.placement" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
{{- with $values.priorityClassName -}}
{{ if eq $.mode "agent" -}}
# The scheduler starts it before other pods, and evicts it last: users need it when something is wrong.
{{ end -}}
priorityClassName: {{ include "mesh-agent.string" . }}
{{ end -}}
{{- with $values.nodeSelector -}}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with $values.affinity -}}
affinity:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- if $values.tolerations -}}
{{ if eq .mode "agent" -}}
# On every node, also on tainted ones and on those that are not ready.
{{ end -}}
tolerations:
{{- if eq .mode "etcd-users" }}
# If the network needs the etcd, nodes become ready only after this pod runs.
{{- else if ne .mode "agent" }}
# If the network needs the etcd, nodes become ready only after this pod runs. It does not tolerate a lost node for ever,
# so it moves to another one.
{{- end }}
{{- include "mesh-agent.tolerations" $values.tolerations }}
{{ end -}}
{{- if ne .mode "etcd-users" -}}
# The process stops within 10 seconds.
{{ end -}}
terminationGracePeriodSeconds: 20
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ include "mesh-agent.string" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* As a list of maps whose fields are in the usual order. */}}
{{- define "mesh-agent.tolerations" -}}
{{- range $one := . }}
{{- $sign := "-" }}
{{- range $field := list "key" "operator" "value" "effect" "tolerationSeconds" }}
{{- if hasKey $one $field }}
{{ $sign }} {{ $field }}: {{ eq $field "tolerationSeconds" | ternary (index $one $field) (include "mesh-agent.string" (index $one $field)) }}
{{- $sign = " " }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "mesh-agent.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  {{- with (.root | default .).Values.securityContext }}
  {{- with .runAsUser }}
  runAsUser: {{ . | int64 }}
  {{- end }}
  {{- with .runAsGroup }}
  runAsGroup: {{ . | int64 }}
  {{- end }}
  {{- with .fsGroup }}
  # The group that can read the files of the volumes. Without it, only root can.
  fsGroup: {{ . | int64 }}
  {{- end }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "mesh-agent.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  privileged: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
    - ALL
{{- end }}

{{- define "mesh-agent.containerImage" -}}
image: {{ include "mesh-agent.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- end }}

{{- define "mesh-agent.resources" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
requests:
  cpu: {{ include "mesh-agent.string" $values.resources.requests.cpu }}
  memory: {{ include "mesh-agent.string" $values.resources.requests.memory }}
limits:
  {{- with $values.resources.limits.cpu }}
  cpu: {{ include "mesh-agent.string" . }}
  {{- end }}
  memory: {{ include "mesh-agent.string" $values.resources.limits.memory }}
{{- end }}

{{/* 90 % of the memory limit, in MiB. */}}
{{- define "mesh-agent.memory" -}}
{{- $limit := (include "mesh-agent.values" . | fromJson).resources.limits.memory -}}
{{- $mib := regexReplaceAll "[MG]i$" $limit "" | int -}}
{{- if hasSuffix "Gi" $limit }}{{ $mib = mul $mib 1024 }}{{ end -}}
{{ div (mul $mib 9) 10 }}MiB
{{- end }}

{{/* The directory of the socket, in every mode that listens. */}}
{{- define "mesh-agent.socketMount" -}}
- name: socket
  mountPath: /var/run/mesh-agent
{{- end }}

{{- define "mesh-agent.socketVolume" -}}
# The directory of the socket, in memory. Commands in the pod find the {{ eq .mode "agent" | ternary "agent" "process" }}
# by it.
- name: socket
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}

{{- define "mesh-agent.extraMounts" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
{{- if .root.Values.api.tls.secret }}
- name: api-tls
  mountPath: /var/lib/mesh-agent/tls
  readOnly: true
{{- end }}
{{- with $values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "mesh-agent.extraVolumes" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
{{- with .root.Values.api.tls.secret }}
- name: api-tls
  secret:
    secretName: {{ include "mesh-agent.string" . }}
    # Only the owner can read them; `fsGroup` adds the group.
    defaultMode: 0400
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
