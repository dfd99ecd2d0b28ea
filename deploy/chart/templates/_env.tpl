{{/* Variables and arguments. Each helper takes "root" and "mode". */}}

{{/* Who the cluster is. */}}
{{- define "mesh-agent.clusterEnv" -}}
{{- $cluster := .root.Values.cluster -}}
{{- if $cluster.name -}}
- name: MESH_AGENT_CLUSTER_NAME
  value: {{ include "mesh-agent.string" $cluster.name }}
{{- if ne .mode "etcd-users" }}
- name: MESH_AGENT_CLUSTER_ID
  value: {{ $cluster.id | int64 | toString | quote }}
{{- with $cluster.maxConnectedClusters }}
- name: MESH_AGENT_MAX_CONNECTED_CLUSTERS
  value: {{ . | int64 | toString | quote }}
{{- end }}
{{- end }}
{{- else -}}
{{- if eq .mode "etcd-users" -}}
# The cluster of the etcd. Its name decides the users and the keys that they can write.
{{- else if eq .mode "agent" -}}
# Name and ID of the cluster, from the same ConfigMap as for Cilium's agents. Without a cilium-config, replace `valueFrom`
# with values.
{{- else -}}
# Name and ID of the cluster, from the same ConfigMap as for Cilium's agents. Without a cilium-config, replace `valueFrom`
# with a name, and an ID that no other cluster of the mesh has.
{{- end }}
- name: MESH_AGENT_CLUSTER_NAME
  valueFrom:
    configMapKeyRef:
      name: {{ include "mesh-agent.string" $cluster.configMap }}
      key: cluster-name
{{- if ne .mode "etcd-users" }}
- name: MESH_AGENT_CLUSTER_ID
  valueFrom:
    configMapKeyRef:
      name: {{ include "mesh-agent.string" $cluster.configMap }}
      key: cluster-id
# The number of clusters that an identity can name. Default: 255.
- name: MESH_AGENT_MAX_CONNECTED_CLUSTERS
  valueFrom:
    configMapKeyRef:
      name: {{ include "mesh-agent.string" $cluster.configMap }}
      key: max-connected-clusters
      optional: true
{{- end }}
{{- end }}
{{- end }}

{{/*
The networks and the size of the cluster, for processes that read remote clusters: the values, or what an
optional ConfigMap of the same name says.
*/}}
{{- define "mesh-agent.networksEnv" -}}
{{- $cluster := .root.Values.cluster -}}
# The networks of the Services of this cluster, separated by commas. The process then rejects addresses of remote
# clusters in them (docs/claims.md). It has no other source for these networks. To find and set them:
#   kubectl get servicecidr kubernetes -o jsonpath='{.spec.cidrs}'        # Kubernetes 1.33 or newer, or:
#   kubectl -n kube-system get pod -l component=kube-apiserver -o yaml | grep service-cluster-ip-range
#   kubectl -n kube-system create configmap mesh-agent --from-literal=service-cidr=10.96.0.0/12
{{ include "mesh-agent.optionalEnv" (dict "root" .root "variable" "SERVICE_CIDR" "key" "service-cidr" "value" (join "," $cluster.serviceCIDRs)) }}
# The networks of the pods of this cluster, for a process that does not read its own nodes. They are in
# clusterPoolIPv4PodCIDRList of Cilium's values: --from-literal=pod-cidr=10.0.0.0/16. The number of nodes limits how often
# all of them together ask the etcd of a remote cluster: --from-literal=cluster-size=500.
{{ include "mesh-agent.optionalEnv" (dict "root" .root "variable" "POD_CIDR" "key" "pod-cidr" "value" (join "," $cluster.podCIDRs)) }}
{{ include "mesh-agent.optionalEnv" (dict "root" .root "variable" "CLUSTER_SIZE" "key" "cluster-size" "value" (empty $cluster.size | ternary "" ($cluster.size | int64 | toString))) }}
{{- end }}

{{- define "mesh-agent.optionalEnv" -}}
- name: MESH_AGENT_{{ .variable }}
{{- if .value }}
  value: {{ include "mesh-agent.string" .value }}
{{- else }}
  valueFrom:
    configMapKeyRef:
      name: {{ .root.Values.name }}
      key: {{ .key }}
      optional: true
{{- end }}
{{- end }}

{{/* The node, and the memory. */}}
{{- define "mesh-agent.processEnv" -}}
- name: MESH_AGENT_NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
# 90 % of the memory limit below: near it, the garbage collector runs more often, so that the kernel does not kill the
# process. Change both together.
- name: GOMEMLIMIT
  value: {{ include "mesh-agent.memory" . }}
{{- end }}

{{/* What makes an agent a member of a cluster without Cilium. */}}
{{- define "mesh-agent.memberEnv" -}}
- name: MESH_AGENT_KUBERNETES
  value: "true"
- name: MESH_AGENT_KVSTORE_OPT
  value: {{ include "mesh-agent.etcdClientOption" nil }}
# The node's identity references end with this address.
- name: MESH_AGENT_NODE_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}

{{/* The namespace of the Leases of identities. */}}
{{- define "mesh-agent.leaseNamespace" -}}
{{- .Values.identities.leaseNamespace | default .Release.Namespace }}
{{- end }}

{{/* Where identities are kept, if it is not in etcd. */}}
{{- define "mesh-agent.identitiesEnv" -}}
{{- if ne .root.Values.identities.mode "kvstore" }}
- name: MESH_AGENT_IDENTITY_ALLOCATION_MODE
  value: {{ .root.Values.identities.mode }}
# The namespace of the Leases in which nodes list the identities that they use.
- name: MESH_AGENT_K8S_NAMESPACE
  value: {{ include "mesh-agent.string" (include "mesh-agent.leaseNamespace" .root) }}
{{- end }}
{{- end }}

{{- define "mesh-agent.extraEnv" -}}
{{- with (include "mesh-agent.values" . | fromJson).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Further flags, in the order of their names. A list is a flag that is given several times. */}}
{{- define "mesh-agent.settings" -}}
{{- $mode := .mode -}}
{{- $settings := (include "mesh-agent.values" . | fromJson).settings -}}
{{- if and (eq $mode "agent") .root.Values.agent.member (hasKey $settings "kvstore-opt") }}
{{- /* A flag replaces its variable, and with it the client file. */}}
- {{ include "mesh-agent.etcdClientFlag" nil }}
{{- end }}
{{- range $name, $value := $settings }}
{{- if has $name (include "mesh-agent.reserved" nil | fromJsonArray) }}
{{- fail (printf "%s.settings.%s: the chart gives this flag itself: see its other values" $mode $name) }}
{{- end }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
- {{ include "mesh-agent.string" (printf "--%s=%s" $name (kindIs "float64" . | ternary (. | int64 | toString) (toString .))) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Flags that templates give: given twice, the second one would win. */}}
{{- define "mesh-agent.reserved" -}}
["listen","socket","listen-insecure","tls-cert-file","tls-key-file","tls-client-ca-file","probe-listen","clustermesh-config","cluster-name","cluster-id",
"max-connected-clusters","service-cidr","pod-cidr","cluster-size","node-name","node-ip","kubernetes","endpoint-slices","mcs-api","install-crds",
"publish-nodes-and-addresses","identity-allocation-mode","k8s-namespace","dns","xds","dns-zones","config"]
{{- end }}
