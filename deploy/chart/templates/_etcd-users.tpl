{{/*
The job that gives the cluster's own etcd its users and roles. "hook" is whether Helm runs it, before
everything else at an installation and an upgrade, and deletes it when it has done its work.
*/}}
{{- define "mesh-agent.etcdUsers" -}}
{{- $root := .root -}}
{{- $w := dict "root" .root "mode" "etcd-users" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "mesh-agent.fullname" $w }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "mesh-agent.labels" $w | nindent 4 }}
  {{- if .hook }}
  {{- include "mesh-agent.hook" -2 | nindent 2 }}
  {{- end }}
# The job does not use the Kubernetes API.
automountServiceAccountToken: false
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "mesh-agent.fullname" $w }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "mesh-agent.labels" $w | nindent 4 }}
  {{- if .hook }}
  {{- include "mesh-agent.hook" -1 | nindent 2 }}
  {{- end }}
spec:
  # The job can be repeated: etcd may not run yet.
  backoffLimit: 6
  activeDeadlineSeconds: 900
  template:
    metadata:
      {{- include "mesh-agent.podMetadata" $w | nindent 6 }}
    spec:
      serviceAccountName: {{ include "mesh-agent.fullname" $w }}
      automountServiceAccountToken: false
      # Variables of the Services in the namespace could look like settings of mesh-agent.
      enableServiceLinks: false
      # A failed pod stays, for its log.
      restartPolicy: Never
      {{- include "mesh-agent.network" $w | nindent 6 }}
      {{- include "mesh-agent.placement" $w | nindent 6 }}
      {{- include "mesh-agent.podSecurity" . | nindent 6 }}
      containers:
      - name: mesh-agent
        {{- include "mesh-agent.containerImage" $w | nindent 8 }}
        args:
        - users
        - ensure
        - {{ include "mesh-agent.etcdClientFlag" nil }}
        env:
        {{- include "mesh-agent.clusterEnv" $w | nindent 8 }}
        resources:
          {{- include "mesh-agent.resources" $w | nindent 10 }}
        {{- include "mesh-agent.containerSecurity" . | nindent 8 }}
        volumeMounts:
        {{- include "mesh-agent.etcdMounts" $w | nindent 8 }}
      volumes:
      {{- include "mesh-agent.etcdVolumes" (dict "root" $root "user" "root") | trim | nindent 6 }}
{{- end }}

{{- define "mesh-agent.hook" -}}
annotations:
  helm.sh/hook: pre-install,pre-upgrade
  helm.sh/hook-weight: {{ . | toString | quote }}
  # A failed job stays until the next one, for its log.
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
