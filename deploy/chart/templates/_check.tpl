{{/* What a schema cannot say: values that do not go together. Each message names the value. */}}
{{- define "mesh-agent.check" -}}
{{- with .Values.cluster }}
{{- if and .name (not .id) }}{{ fail "cluster.id: a cluster with a name of its own (cluster.name) needs an ID that no other cluster of the mesh has" }}{{ end }}
{{- if and .id (not .name) }}{{ fail "cluster.name: a cluster with an ID of its own (cluster.id) needs a name, too" }}{{ end }}
{{- if and (gt (int64 .id) 255) (ne (int64 .maxConnectedClusters) 511) }}{{ fail (printf "cluster.id: %d is more than 255, which needs cluster.maxConnectedClusters: 511, in all clusters of the mesh" (int64 .id)) }}{{ end }}
{{- end }}
{{- if and .Values.identities.defineKind (eq .Values.identities.mode "kvstore") }}{{ fail "identities.defineKind: nothing uses the kind while identities.mode is kvstore" }}{{ end }}
{{- include "mesh-agent.checkListeners" . }}
{{- include "mesh-agent.checkPolicy" . }}
{{- include "mesh-agent.checkMonitoring" . }}
{{- end }}

{{- define "mesh-agent.checkListeners" -}}
{{- $api := .Values.api -}}
{{- $reachable := include "mesh-agent.reachable" $api.host }}
{{- $safe := or $api.tls.secret $api.insecure }}
{{- if and $reachable (not $safe) }}{{ fail (printf "api.host: %s is not of this machine alone: give api.tls.secret, or api.insecure if everyone who reaches it may read everything" $api.host) }}{{ end }}
{{- if and $api.tls.secret $api.insecure }}{{ fail "api.insecure: with api.tls.secret nothing is in plain text" }}{{ end }}
{{- with .Values.agent.xds }}
{{- if and .enabled (include "mesh-agent.reachable" .host) (not $safe) }}{{ fail (printf "agent.xds.host: %s is not of this machine alone: give api.tls.secret, or api.insecure if everyone who reaches it may read everything" .host) }}{{ end }}
{{- end }}
{{- range $mode := list "agent" "operate" "mirror" }}
{{- with index $.Values $mode }}
{{- if and .enabled (not .hostNetwork) (not $reachable) }}{{ fail (printf "%s.hostNetwork: outside of the node's network the kubelet does not reach %s: give another api.host, such as 0.0.0.0" $mode $api.host) }}{{ end }}
{{- end }}
{{- end }}
{{- if and .Values.agent.enabled (not .Values.agent.hostNetwork) }}
{{- range $what, $of := dict "dns" .Values.agent.dns "xds" .Values.agent.xds }}
{{- if and $of.enabled (not (include "mesh-agent.reachable" $of.host)) }}{{ fail (printf "agent.%s.host: in a pod with its own network no client reaches %s: give another address, such as 0.0.0.0" $what $of.host) }}{{ end }}
{{- end }}
{{- end }}
{{- include "mesh-agent.checkPorts" . }}
{{- end }}

{{/* Two that listen in one network need two ports. */}}
{{- define "mesh-agent.checkPorts" -}}
{{- $used := dict -}}
{{- range $one := list
  (list "agent.port" .Values.agent.enabled .Values.agent "agent")
  (list "operate.port" .Values.operate.enabled .Values.operate "operate")
  (list "mirror.port" .Values.mirror.enabled .Values.mirror "mirror")
  (list "agent.dns.port" (and .Values.agent.enabled .Values.agent.dns.enabled) .Values.agent.dns "agent")
  (list "agent.xds.port" (and .Values.agent.enabled .Values.agent.xds.enabled) .Values.agent.xds "agent") }}
{{- if index $one 1 }}
{{- $mode := index $one 3 }}
{{- $port := (index $one 2).port | int64 | toString }}
{{- $place := print ((index $.Values $mode).hostNetwork | ternary "node" $mode) ":" $port }}
{{- with index $used $place }}{{ fail (printf "%s: %s is the port of %s, too" (index $one 0) $port .) }}{{ end }}
{{- $_ := set $used $place (index $one 0) }}
{{- end }}
{{- end }}
{{- end }}
