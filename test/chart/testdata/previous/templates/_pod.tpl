{{/* What the pods of all modes have in common. Each helper takes "root" and "mode". */}}

{{- define "mesh-agent.network" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
{{- if $values.hostNetwork -}}
{{- if eq .mode "agent" -}}
# The node's own network: the way to the remote kvstores must not depend on the mesh that is looked at,
# and the answers are for the node (127.0.0.1 is the node's).
hostNetwork: true
# Without this a pod in the node's network asks the node's DNS, which does not know
# clustermesh-apiserver.kube-system.svc. Names such as cluster2.mesh.cilium.io are in the client files
# themselves (cilium-host-aliases); where an older Cilium wrote none, copy the hostAliases of its DaemonSet to here.
{{- else -}}
# The node's own network: the way to the kvstores must not depend on what is published in them.
hostNetwork: true
# Without this a pod in the node's network asks the node's DNS, which does not know names of services.
{{- end }}
dnsPolicy: ClusterFirstWithHostNet
{{- else -}}
# A network of its own, where policies limit who reaches it.
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
# Before other pods, and the last to be evicted: people ask it when things go wrong.
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
# On every node, also on those that nothing else may use or that are not ready yet.
{{ end -}}
tolerations:
{{- if eq .mode "etcd-users" }}
# Where the network waits for a kvstore the nodes are not ready before this runs.
{{- else if ne .mode "agent" }}
# Where the network waits for a kvstore the nodes are not ready before this runs. A node that is lost for longer is
# left to another one, so nothing tolerates that for ever.
{{- end }}
{{- include "mesh-agent.tolerations" $values.tolerations }}
{{ end -}}
{{- if ne .mode "etcd-users" -}}
# It stops within 10 seconds of being asked.
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
  runAsUser: 65532
  runAsGroup: 65532
  # Makes the files of the volumes readable for this group; without it they are root's alone.
  fsGroup: 65532
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
# Where the command finds the {{ eq .mode "agent" | ternary "agent" "process" }}, within the pod. In memory, since it holds nothing but the socket.
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
    # For the owner alone; fsGroup adds the group.
    defaultMode: 0400
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
