{{/* A variable can only be a whole value, so the routes are one. */}}
{{- define "mcpbridge.nats.conf" -}}
server_name: $POD_NAME
listen: 0.0.0.0:4222
http: 0.0.0.0:8222
jetstream {store_dir: /data, max_memory_store: 64MB, max_file_store: 256MB}
authorization {user: peers, password: $NATS_PASSWORD}
lame_duck_duration: 30s
lame_duck_grace_period: 5s
{{- if gt (int .Values.nats.replicas) 1 }}
cluster {
  name: {{ include "mcpbridge.nats" . }}
  listen: 0.0.0.0:6222
  authorization {user: cluster, password: $NATS_PASSWORD}
  routes: $NATS_ROUTES
}
{{- end }}
{{- end -}}

{{- define "mcpbridge.nats.pod" -}}
serviceAccountName: {{ include "mcpbridge.fullname" . }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 60 # longer than lame_duck_duration
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: nats
    image: {{ .Values.nats.image.repository }}:{{ .Values.nats.image.tag }}
    imagePullPolicy: {{ .Values.nats.image.pullPolicy }}
    args: [--config, /etc/nats/nats.conf]
    env:
      {{- include "mcpbridge.nats.env" . | trim | nindent 6 }}
    ports:
      - {name: nats, containerPort: 4222, protocol: TCP}
      - {name: cluster, containerPort: 6222, protocol: TCP}
      - {name: monitor, containerPort: 8222, protocol: TCP}
    livenessProbe:
      httpGet: {path: "/healthz?js-enabled-only=true", port: monitor}
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: "/healthz?js-server-only=true", port: monitor}
      periodSeconds: 5
      timeoutSeconds: 5
    lifecycle:
      preStop:
        exec: {command: [nats-server, --signal, ldm=1]}
    resources:
      {{- toYaml .Values.nats.resources | nindent 6 }}
    securityContext:
      {{- include "mcpbridge.restricted" . | nindent 6 }}
    volumeMounts:
      - {name: config, mountPath: /etc/nats, readOnly: true}
      - {name: data, mountPath: /data}
volumes:
  - name: config
    configMap: {name: {{ include "mcpbridge.nats" . }}}
  - name: data
    emptyDir: {sizeLimit: 512Mi}
topologySpreadConstraints:
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "mcpbridge.selector" (dict "at" $ "component" "nats") | nindent 8 }}
{{- include "mcpbridge.placement" . }}
{{- end -}}

{{/* Quotes, so that no password is taken for a number. */}}
{{- define "mcpbridge.nats.env" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: NATS_SECRET
  valueFrom: {secretKeyRef: {name: {{ include "mcpbridge.secret" . }}, key: nats-password}}
- name: NATS_PASSWORD
  value: "'$(NATS_SECRET)'"
{{- $name := include "mcpbridge.nats" . }}
{{- $routes := list }}
{{- range until (int .Values.nats.replicas) }}
{{- $routes = append $routes (printf "'nats-route://cluster:$(NATS_SECRET)@%s-%d.%s:6222'" $name . $name) }}
{{- end }}
- name: NATS_ROUTES
  value: "[{{ join ", " $routes }}]"
{{- end -}}
