{{/* What the modes have in common of which two run. Each helper takes "root" and "mode". */}}

{{- define "mesh-agent.replicas" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
# One leads, the other one takes over within the lease of a lock in the kvstore (25 s). What is written outlives both by
# its own lease (15 minutes).
replicas: {{ $values.replicas | int64 }}
{{- if eq .mode "mirror" }}
# It is not ready before everything is copied that can be, for which it may take 10 minutes.
progressDeadlineSeconds: 900
{{- end }}
selector:
  matchLabels:
    {{- include "mesh-agent.selector" . | nindent 4 }}
strategy:
  type: RollingUpdate
  rollingUpdate:
    maxUnavailable: 1
    # Two of them cannot share a node: they would want the same port. That also spreads them.
    maxSurge: 0
{{- end }}

{{- define "mesh-agent.budget" -}}
{{- if (include "mesh-agent.values" . | fromJson).podDisruptionBudget }}
---
# A drain takes one of the two at a time, and one that is not ready at any time. (The DaemonSet of the agents has no such
# budget: a drain leaves its pods alone, and its own maxUnavailable is for updates.)
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
