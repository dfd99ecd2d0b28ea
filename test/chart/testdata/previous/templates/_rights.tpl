{{/* The binding of a role of all namespaces. "more" ends its name, "labels" is the mode whose labels it has. */}}
{{- define "mesh-agent.clusterRoleBinding" -}}
{{- $name := print (include "mesh-agent.fullname" .) (.more | default "") -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "mesh-agent.labels" (dict "root" .root "mode" (.labels | default .mode)) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
{{ include "mesh-agent.subject" . }}
{{- end }}

{{- define "mesh-agent.subject" -}}
- kind: ServiceAccount
  name: {{ include "mesh-agent.fullname" . }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}
