{{/* The kind of object that identities are in the Kubernetes API. "keep" is whether Helm leaves it when the release goes. */}}
{{- define "mesh-agent.identitiesCRD" -}}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ciliumidentities.cilium.io
  {{- if .keep }}
  annotations:
    # The deletion of the CRD would delete all identities.
    helm.sh/resource-policy: keep
  {{- end }}
spec:
  group: cilium.io
  scope: Cluster
  names:
    kind: CiliumIdentity
    listKind: CiliumIdentityList
    plural: ciliumidentities
    singular: ciliumidentity
    shortNames: [ciliumid]
    categories: [cilium]
  versions:
  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [security-labels]
        properties:
          security-labels:
            type: object
            additionalProperties: {type: string}
{{- end }}
