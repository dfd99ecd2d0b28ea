{{/* Where the HTTP API listens, and who asks it. Each helper takes "root" and "mode". */}}

{{/* An address and a port, for a flag. */}}
{{- define "mesh-agent.hostPort" -}}
{{- contains ":" .host | ternary (printf "[%s]" .host) .host }}:{{ .port | int64 }}
{{- end }}

{{/* Whether other machines reach an address: "true" or nothing. */}}
{{- define "mesh-agent.reachable" -}}
{{- if not (or (hasPrefix "127." .) (eq "::1" .)) }}true{{ end }}
{{- end }}

{{- define "mesh-agent.listenArgs" -}}
{{- $api := .root.Values.api -}}
{{- $port := (include "mesh-agent.values" . | fromJson).port -}}
{{- if eq .mode "agent" -}}
# Only this node can reach the API, because it does not authenticate its clients. For a Prometheus on another machine,
# change the address here and in the probes, and use TLS and client certificates (docs/api-security.md).
{{- else -}}
# Only this node can reach the API, because it does not authenticate its clients. The port differs from that of the
# DaemonSet.
{{- end }}
- --listen={{ include "mesh-agent.hostPort" (dict "host" $api.host "port" $port) }}
{{- if $api.tls.secret }}
- --tls-cert-file=/var/lib/mesh-agent/tls/tls.crt
- --tls-key-file=/var/lib/mesh-agent/tls/tls.key
{{- if $api.tls.clientCertificates }}
- --tls-client-ca-file=/var/lib/mesh-agent/tls/ca.crt
- --probe-listen={{ include "mesh-agent.hostPort" (dict "host" $api.host "port" (include "mesh-agent.probePort" .)) }}
{{- end }}
{{- end }}
{{- if $api.insecure }}
- --listen-insecure
{{- end }}
- --socket=/var/run/mesh-agent/mesh-agent.sock
{{- end }}

{{/* A port of the container, which is the node's in its network. "host" and "port" are where it listens. */}}
{{- define "mesh-agent.port" -}}
- name: {{ .name }}
  containerPort: {{ .port | int64 }}
  {{- if (include "mesh-agent.values" . | fromJson).hostNetwork }}
  hostPort: {{ .port | int64 }}
  {{- if not (has .host (list "0.0.0.0" "::")) }}
  hostIP: {{ include "mesh-agent.address" .host }}
  {{- end }}
  {{- end }}
  protocol: {{ .protocol | default "TCP" }}
{{- end }}

{{/* IPv4 needs no quotes, IPv6 does. */}}
{{- define "mesh-agent.address" -}}
{{- regexMatch "^[0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+$" . | ternary . (quote .) }}
{{- end }}

{{/* Where the kubelet asks, which has no client certificate: beside the port of the API. */}}
{{- define "mesh-agent.probePort" -}}
{{- add (include "mesh-agent.values" . | fromJson).port 1000 }}
{{- end }}

{{/* What the kubelet does to ask for a path. */}}
{{- define "mesh-agent.probe" -}}
{{- $api := .root.Values.api -}}
{{- $certificates := and $api.tls.secret $api.tls.clientCertificates -}}
httpGet:
  {{- if not (include "mesh-agent.reachable" $api.host) }}
  host: {{ include "mesh-agent.address" $api.host }}{{ if eq .path "/healthz" }} # else the node's address would be asked, where nobody listens{{ end }}
  {{- else if not (has $api.host (list "0.0.0.0" "::")) }}
  host: {{ include "mesh-agent.address" $api.host }}
  {{- end }}
  path: {{ .path }}
  {{- if $certificates }}
  port: {{ include "mesh-agent.probePort" . }} # --probe-listen: the kubelet has no client certificate
  {{- else }}
  port: {{ (include "mesh-agent.values" . | fromJson).port | int64 }}
  {{- if $api.tls.secret }}
  scheme: HTTPS
  {{- end }}
  {{- end }}
{{- end }}

{{- define "mesh-agent.liveness" -}}
{{- include "mesh-agent.probe" (dict "root" .root "mode" .mode "path" "/healthz") }}
periodSeconds: 10
timeoutSeconds: 5
failureThreshold: 6
{{- end }}

{{- define "mesh-agent.readiness" -}}
{{- include "mesh-agent.probe" (dict "root" .root "mode" .mode "path" "/readyz") }}
periodSeconds: 5
timeoutSeconds: 5
failureThreshold: 3
{{- end }}
