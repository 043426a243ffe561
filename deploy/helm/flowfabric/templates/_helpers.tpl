{{- define "flowfabric.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "flowfabric.secret" -}}
{{- .Values.secret.existing | default (include "flowfabric.name" .) }}
{{- end }}

{{- define "flowfabric.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "flowfabric.allLabels" -}}
{{ include "flowfabric.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "flowfabric.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "flowfabric.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "flowfabric.env" -}}
- name: FLOWFABRIC_URL
  valueFrom: {secretKeyRef: {name: {{ include "flowfabric.secret" . }}, key: FLOWFABRIC_URL}}
- name: FLOWFABRIC_TOKEN_KEYS
  valueFrom: {secretKeyRef: {name: {{ include "flowfabric.secret" . }}, key: FLOWFABRIC_TOKEN_KEYS}}
{{- end }}
