{{/* What asks an agent beside its API: DNS clients and those of xDS. */}}

{{- define "mesh-agent.consumerArgs" -}}
{{- with .Values.agent.dns }}
{{- if .enabled }}
- --dns={{ include "mesh-agent.hostPort" . }}
- {{ include "mesh-agent.string" (print "--dns-zones=" (join "," .zones)) }}
{{- end }}
{{- end }}
{{- with .Values.agent.xds }}
{{- if .enabled }}
- --xds={{ include "mesh-agent.hostPort" . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "mesh-agent.consumerPorts" -}}
{{- $root := . -}}
{{- with .Values.agent.dns }}
{{- if .enabled }}
{{ include "mesh-agent.port" (dict "root" $root "mode" "agent" "name" "dns" "host" .host "port" .port "protocol" "UDP") }}
{{ include "mesh-agent.port" (dict "root" $root "mode" "agent" "name" "dns-tcp" "host" .host "port" .port) }}
{{- end }}
{{- end }}
{{- with .Values.agent.xds }}
{{- if .enabled }}
{{ include "mesh-agent.port" (dict "root" $root "mode" "agent" "name" "xds" "host" .host "port" .port) }}
{{- end }}
{{- end }}
{{- end }}
