{{/* What the modes have in common of which two run. Each helper takes "root" and "mode". */}}

{{- define "mesh-agent.replicas" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
# One process leads, the other one takes over within 25 seconds, the lease of a lock in etcd. The written keys have their
# own lease (15 minutes), so they stay.
replicas: {{ $values.replicas | int64 }}
{{- if eq .mode "mirror" }}
# A mirror is ready after the first copy of all reachable clusters, which can take 10 minutes.
progressDeadlineSeconds: 900
{{- end }}
selector:
  matchLabels:
    {{- include "mesh-agent.selector" . | nindent 4 }}
strategy:
  type: RollingUpdate
  rollingUpdate:
    maxUnavailable: 1
    {{- if $values.hostNetwork }}
    # Two of them cannot run on one node, because they use the same port. This also spreads them.
    {{- end }}
    maxSurge: 0
{{- end }}

{{/* Ports of the node spread the two of a mode. Without them this does. */}}
{{- define "mesh-agent.spread" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
{{- if and (not $values.hostNetwork) (empty $values.affinity) }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "mesh-agent.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{- define "mesh-agent.budget" -}}
{{- if (include "mesh-agent.values" . | fromJson).podDisruptionBudget }}
---
# A drain evicts one of the two at a time, and always one that is not ready. The DaemonSet of the agents needs no such
# budget: a drain does not evict its pods, and its `maxUnavailable` is for updates.
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "mesh-agent.fullname" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "mesh-agent.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "mesh-agent.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* Of an operator that writes EndpointSlices of remote backends. */}}
{{- define "mesh-agent.endpointSlicesEnv" -}}
- name: MESH_AGENT_ENDPOINT_SLICES
  value: "true"
{{- end }}

{{/* Of an operator that serves the MCS API. */}}
{{- define "mesh-agent.mcsEnv" -}}
- name: MESH_AGENT_MCS_API
  value: "true"
{{- end }}
