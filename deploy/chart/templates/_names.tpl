{{/*
What is called how. Most helpers take a dict with "root", the context of the template, and
"mode": agent, operate, mirror, etcd-users. Everything is named after the value "name", not after
the release: the names of etcd's users and of the Secrets in the documentation are, too.
*/}}
{{- define "mesh-agent.fullname" -}}
{{- .root.Values.name }}{{ if ne .mode "agent" }}-{{ .mode }}{{ end }}
{{- end }}

{{/* The values of a mode: those of etcd-users are under etcdUsers. */}}
{{- define "mesh-agent.values" -}}
{{- index .root.Values (eq .mode "etcd-users" | ternary "etcdUsers" .mode) | toJson }}
{{- end }}

{{- define "mesh-agent.selector" -}}
app.kubernetes.io/name: {{ include "mesh-agent.fullname" . }}
{{- end }}

{{- define "mesh-agent.labels" -}}
{{ include "mesh-agent.selector" . }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels and annotations of a pod. */}}
{{- define "mesh-agent.podMetadata" -}}
{{- $values := include "mesh-agent.values" . | fromJson -}}
labels:
  {{- include "mesh-agent.labels" . | nindent 2 }}
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := deepCopy ($values.podAnnotations | default dict) }}
{{- if and .root.Values.etcd.endpoints (or (ne .mode "agent") .root.Values.agent.member) }}
{{- /* The file is read at the start alone. */}}
{{- $_ := set $annotations "checksum/etcd-config" (include "mesh-agent.etcdClientFile" .root | sha256sum) }}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
A string as YAML: as it is where nothing else could be read from it, otherwise in quotes. Nothing
that a value holds can end a line or begin a comment.
*/}}
{{- define "mesh-agent.string" -}}
{{- $text := . | toString -}}
{{- $word := has (lower $text) (list "true" "false" "yes" "no" "on" "off" "y" "n" "null") -}}
{{- if and (not $word) (regexMatch "^(([A-Za-z/]|--[A-Za-z])[A-Za-z0-9/_.,=:@%+()$-]*[A-Za-z0-9/]|[0-9]+(m|[KMGT]i))$" $text) }}{{ $text }}{{ else }}{{ $text | toJson }}{{ end }}
{{- end }}

{{- define "mesh-agent.image" -}}
{{- with .Values.image -}}
{{- $tag := .tag | toString }}
{{- include "mesh-agent.string" (print .repository (empty $tag | ternary "" (print ":" $tag)) (empty .digest | ternary "" (print "@" .digest))) }}
{{- end }}
{{- end }}
