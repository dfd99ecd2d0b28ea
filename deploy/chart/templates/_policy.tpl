{{/* Who may come in: a rule for each port that somebody may reach. An empty list is nobody, though in a policy it is everybody. */}}
{{- define "mesh-agent.ingress" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{- with $policy.api.from }}
# The API.
- ports:
  - {port: http, protocol: TCP}
  from:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if eq .mode "agent" }}
{{- if and .root.Values.agent.dns.enabled $policy.dns.from }}
# DNS.
- ports:
  - {port: dns, protocol: UDP}
  - {port: dns-tcp, protocol: TCP}
  from:
  {{- toYaml $policy.dns.from | nindent 2 }}
{{- end }}
{{- if and .root.Values.agent.xds.enabled $policy.xds.from }}
# xDS.
- ports:
  - {port: xds, protocol: TCP}
  from:
  {{- toYaml $policy.xds.from | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* A policy that nothing heeds is worse than none. */}}
{{- define "mesh-agent.checkPolicy" -}}
{{- if .Values.networkPolicy.enabled }}
{{- $limited := false }}
{{- range $mode := list "agent" "operate" "mirror" }}
{{- with index $.Values $mode }}{{ if and .enabled (not .hostNetwork) }}{{ $limited = true }}{{ end }}{{ end }}
{{- end }}
{{- if not $limited }}{{ fail "networkPolicy.enabled: no policy limits pods in the node's network: set hostNetwork: false where it shall count" }}{{ end }}
{{- end }}
{{- end }}
