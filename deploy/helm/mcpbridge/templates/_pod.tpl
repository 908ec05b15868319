{{/* The pod of a replica. */}}
{{- define "mcpbridge.pod" -}}
serviceAccountName: {{ include "mcpbridge.fullname" . }}
automountServiceAccountToken: false
# Kubernetes would set MCPBRIDGE_PORT for a Service of that name, and mcpbridge takes
# MCPBRIDGE_… for keys of its configuration.
enableServiceLinks: false
# drain_delay, drain, and what leaving takes.
terminationGracePeriodSeconds: {{ add .Values.drainDelaySeconds .Values.drainSeconds 15 }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ include "mcpbridge.user" . }}
  runAsGroup: {{ include "mcpbridge.user" . }}
  fsGroup: {{ include "mcpbridge.user" . }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: mcpbridge
    image: {{ include "mcpbridge.image" . }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [serve, /etc/mcpbridge/config.yaml]
    env:
      - name: POD_IP
        valueFrom: {fieldRef: {fieldPath: status.podIP}}
      {{- with .Values.env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with .Values.envFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - {name: http, containerPort: 2526, protocol: TCP}
      - {name: admin, containerPort: 2527, protocol: TCP}
      {{- if ne .Values.engine.kind "none" }}
      - {name: peer, containerPort: 2528, protocol: TCP}
      {{- end }}
    {{- $scheme := ternary "HTTPS" "HTTP" (not (empty (include "mcpbridge.tls.clients" .))) }}
    livenessProbe:
      httpGet: {path: /healthz, port: admin, scheme: {{ $scheme }}}
      initialDelaySeconds: 5
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    # Two failures, a few seconds, are well within drain_delay.
    readinessProbe:
      httpGet: {path: /readyz, port: admin, scheme: {{ $scheme }}}
      periodSeconds: 2
      timeoutSeconds: 2
      failureThreshold: 2
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      {{- include "mcpbridge.restricted" . | nindent 6 }}
    volumeMounts:
      {{- include "mcpbridge.mounts" . | trim | nindent 6 }}
  {{- with .Values.extraContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.extraInitContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  {{- include "mcpbridge.volumes" . | trim | nindent 2 }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "mcpbridge.selector" (dict "at" $ "component" "gateway") | nindent 8 }}
  {{- end }}
{{- include "mcpbridge.placement" . }}
{{- end -}}

{{- define "mcpbridge.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "mcpbridge.mounts" -}}
- {name: config, mountPath: /etc/mcpbridge, readOnly: true}
- {name: secret, mountPath: /run/secrets/mcpbridge, readOnly: true}
- {name: state, mountPath: /var/lib/mcpbridge}
- {name: tmp, mountPath: /tmp}
{{- range $name, $secret := include "mcpbridge.secrets" . | fromYaml }}
- {name: {{ $name }}, mountPath: /run/secrets/{{ $name }}, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Files are for the process alone, and change when the ConfigMap or the Secret does. */}}
{{- define "mcpbridge.volumes" -}}
- name: config
  configMap: {name: {{ include "mcpbridge.fullname" . }}, defaultMode: 0440}
- name: secret
  secret: {secretName: {{ include "mcpbridge.secret" . }}, defaultMode: 0440}
- name: state
  {{- if .Values.persistence.existingClaim }}
  persistentVolumeClaim: {claimName: {{ .Values.persistence.existingClaim }}}
  {{- else }}
  emptyDir: {}
  {{- end }}
- name: tmp
  emptyDir: {}
{{- range $name, $secret := include "mcpbridge.secrets" . | fromYaml }}
- name: {{ $name }}
  secret: {secretName: {{ $secret }}, defaultMode: 0440}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Names of further volumes, and of the Secret of each, as YAML. */}}
{{- define "mcpbridge.secrets" -}}
{{- with .Values.secretFiles }}
files: {{ . }}
{{- end }}
{{- with include "mcpbridge.tls.clients" . }}
tls: {{ . }}
{{- end }}
{{- with include "mcpbridge.tls.peers" . }}
peer-tls: {{ . }}
{{- end }}
{{- with .Values.engine.tlsSecret }}
engine-tls: {{ . }}
{{- end }}
{{- with .Values.engine.credentialsSecret }}
engine: {{ . }}
{{- end }}
{{- end -}}
