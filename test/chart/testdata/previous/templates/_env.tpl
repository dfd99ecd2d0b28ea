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
# Whose etcd it is: names the users and what they may write.
{{- else if eq .mode "agent" -}}
# Who we are, as Cilium's own agents are told. Where there is no cilium-config, give values instead.
{{- else -}}
# Who we are, as Cilium's own agents are told. Where there is no cilium-config, give values instead: a name and
# an ID that no other cluster of the mesh has.
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
# Decides where identities end and clusters begin; absent: 255.
- name: MESH_AGENT_MAX_CONNECTED_CLUSTERS
  valueFrom:
    configMapKeyRef:
      name: {{ include "mesh-agent.string" $cluster.configMap }}
      key: max-connected-clusters
      optional: true
{{- end }}
{{- end }}
{{- end }}

{{/* The networks and the size of the cluster: the values, or what an optional ConfigMap of the same name says. */}}
{{- define "mesh-agent.networksEnv" -}}
{{- $cluster := .root.Values.cluster -}}
# The service networks of this cluster, separated by commas: no remote can then have an address in them
# (docs/claims.md). Nothing else tells them to the agent, and without them they are not guarded. To find and give them:
#   kubectl get servicecidr kubernetes -o jsonpath='{.spec.cidrs}'        # Kubernetes 1.33 or newer, or:
#   kubectl -n kube-system get pod -l component=kube-apiserver -o yaml | grep service-cluster-ip-range
#   kubectl -n kube-system create configmap mesh-agent --from-literal=service-cidr=10.96.0.0/12
{{ include "mesh-agent.optionalEnv" (dict "root" .root "variable" "SERVICE_CIDR" "key" "service-cidr" "value" (join "," $cluster.serviceCIDRs)) }}
# The pod networks of this cluster, likewise: this agent does not see its own nodes. As in clusterPoolIPv4PodCIDRList of the
# values of Cilium: --from-literal=pod-cidr=10.0.0.0/16. And how many nodes there are, so that all of them together do
# not ask a remote's etcd too often: --from-literal=cluster-size=500.
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
# Beyond this the collector works harder instead of the kernel ending the process: 90 % of the limit below. The
# program would take the same from its cgroup; change both together.
- name: GOMEMLIMIT
  value: {{ include "mesh-agent.memory" . }}
{{- end }}

{{/* What makes an agent a member of a cluster without Cilium. */}}
{{- define "mesh-agent.memberEnv" -}}
- name: MESH_AGENT_KUBERNETES
  value: "true"
- name: MESH_AGENT_KVSTORE_OPT
  value: etcd.config=/var/lib/etcd-config/etcd.config
# What ends the keys of the node's identity references.
- name: MESH_AGENT_NODE_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}

{{/* Where identities are kept, if it is not in etcd. */}}
{{- define "mesh-agent.identitiesEnv" -}}
{{- if ne .root.Values.identities.mode "kvstore" }}
- name: MESH_AGENT_IDENTITY_ALLOCATION_MODE
  value: {{ .root.Values.identities.mode }}
# Of the Leases in which nodes say which identities they use.
- name: MESH_AGENT_K8S_NAMESPACE
  value: {{ include "mesh-agent.string" .root.Release.Namespace }}
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
{{- range $name, $value := (include "mesh-agent.values" . | fromJson).settings }}
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
["listen","socket","listen-insecure","tls-cert-file","tls-key-file","tls-client-ca-file","clustermesh-config","cluster-name","cluster-id",
"max-connected-clusters","service-cidr","pod-cidr","cluster-size","node-name","node-ip","kubernetes","endpoint-slices","mcs-api","install-crds",
"publish-nodes-and-addresses","identity-allocation-mode","k8s-namespace","dns","xds","dns-zones","config"]
{{- end }}
