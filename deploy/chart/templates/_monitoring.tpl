{{/* How Prometheus asks an API, for the monitors and the discovery. */}}
{{- define "mesh-agent.scrape" -}}
{{- $with := .with -}}
{{- with $with.interval }}
interval: {{ . }}
{{- end }}
{{- if .root.Values.api.tls.secret }}
scheme: {{ .scheme }}
{{- with $with.tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with $with.relabelings }}
relabelings:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* A file of deploy/monitoring, whose jobs have the name of the values. "file" is its path. */}}
{{- define "mesh-agent.monitoringFile" -}}
{{- .root.Files.Get .file | replace ".*mesh-agent.*" (printf ".*%s.*" .root.Values.name) }}
{{- end }}

{{/* Every mode that runs and is asked. */}}
{{- define "mesh-agent.monitored" -}}
matchExpressions:
- key: app.kubernetes.io/name
  operator: In
  values:
  {{- range $mode := list "agent" "operate" "mirror" }}
  {{- if (index $.Values $mode).enabled }}
  - {{ include "mesh-agent.fullname" (dict "root" $ "mode" $mode) }}
  {{- end }}
  {{- end }}
{{- end }}

{{- define "mesh-agent.monitorMetadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "mesh-agent.labels" (dict "root" .root "mode" "agent") | nindent 2 }}
  {{- with .with.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "mesh-agent.checkMonitoring" -}}
{{- $monitoring := .Values.monitoring }}
{{- $reachable := include "mesh-agent.reachable" .Values.api.host }}
{{- range $what := list "podMonitor" "serviceMonitor" "discovery" }}
{{- if and (index $monitoring $what).enabled (not $reachable) }}{{ fail (printf "monitoring.%s.enabled: Prometheus does not reach %s of the nodes: give another api.host, such as 0.0.0.0, and api.tls.secret" $what $.Values.api.host) }}{{ end }}
{{- end }}
{{- if and .Values.services.api (not $reachable) }}{{ fail (printf "services.api: nobody reaches %s through a Service: give another api.host, such as 0.0.0.0, and api.tls.secret" .Values.api.host) }}{{ end }}
{{- range $what := list "serviceMonitor" "discovery" }}
{{- if and (index $monitoring $what).enabled (not $.Values.services.api) }}{{ fail (printf "monitoring.%s.enabled: it asks a Service: set services.api: true" $what) }}{{ end }}
{{- end }}
{{- if and $monitoring.discovery.enabled (not .Values.agent.enabled) }}{{ fail "monitoring.discovery.enabled: agents list the targets: set agent.enabled: true" }}{{ end }}
{{- if and (or $monitoring.rules.enabled $monitoring.rules.configMap) (not (.Files.Get "files/rules.yaml")) }}{{ fail "monitoring.rules: this chart was packaged without files/rules.yaml" }}{{ end }}
{{- if and $monitoring.dashboards.enabled (not (.Files.Glob "files/dashboards/*.json")) }}{{ fail "monitoring.dashboards.enabled: this chart was packaged without files/dashboards/*.json" }}{{ end }}
{{- range $what, $of := dict "dns" .Values.agent.dns "xds" .Values.agent.xds }}
{{- if (index $.Values.services $what).enabled }}
{{- if not $of.enabled }}{{ fail (printf "services.%s.enabled: no agent listens: set agent.%s.enabled: true" $what $what) }}{{ end }}
{{- if not (include "mesh-agent.reachable" $of.host) }}{{ fail (printf "services.%s.enabled: nobody reaches %s through a Service: give another agent.%s.host, such as 0.0.0.0" $what $of.host $what) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
