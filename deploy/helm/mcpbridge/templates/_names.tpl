{{- define "mcpbridge.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 bytes: the names below are at most 63. */}}
{{- define "mcpbridge.fullname" -}}
{{- $name := include "mcpbridge.name" . -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $full | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "mcpbridge.headless" -}}{{ include "mcpbridge.fullname" . }}-headless{{- end -}}
{{- define "mcpbridge.nats" -}}{{ include "mcpbridge.fullname" . }}-nats{{- end -}}
{{- define "mcpbridge.secret" -}}{{ .Values.existingSecret | default (include "mcpbridge.fullname" .) }}{{- end -}}

{{/* Labels by which a component is selected. Argument: dict "at" $ "component" NAME. */}}
{{- define "mcpbridge.selector" -}}
app.kubernetes.io/name: {{ include "mcpbridge.name" .at }}
app.kubernetes.io/instance: {{ .at.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "mcpbridge.labels" -}}
{{ include "mcpbridge.selector" . }}
app.kubernetes.io/version: {{ .at.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .at.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .at.Chart.Name (.at.Chart.Version | replace "+" "_") }}
{{- end -}}

{{/* Labels and annotations of an object. Argument: as above, and what else it has of both. */}}
{{- define "mcpbridge.meta" -}}
labels:
  {{- include "mcpbridge.labels" . | nindent 2 }}
  {{- with get . "labels" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (get . "annotations" | default dict) .at.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "mcpbridge.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ if and .Values.image.commands (not .Values.image.tag) }}-commands{{ end }}
{{- end -}}

{{/* What no container of the chart may do. */}}
{{- define "mcpbridge.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "mcpbridge.user" -}}
{{ ternary 1000 65532 .Values.image.commands }}
{{- end -}}
