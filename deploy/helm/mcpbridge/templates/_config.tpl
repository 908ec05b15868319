{{/* The keys of the configuration that the chart sets. */}}
{{- define "mcpbridge.own" -}}
listen admin admin_token metrics_token tls state_dir drain drain_delay replicas
{{- end -}}

{{/* The keys that mcpbridge applies when the ConfigMap changes; others restart the pods. */}}
{{- define "mcpbridge.live" -}}
servers groups include allow_anonymous public_url auth allowed_origins allowed_hosts trusted_proxies state_keys login_keys debug_errors body_timeout write_timeout keep_alive client_idle drain drain_delay state_dir audit remember keyring client_metadata_url allow_hosts
{{- end -}}

{{/* Fails where values contradict each other. */}}
{{- define "mcpbridge.check" -}}
{{- range splitList " " (include "mcpbridge.own" .) }}
{{- if hasKey $.Values.config . }}{{ fail (printf "config.%s is set by the chart: remove it, and see values.yaml for the value that stands for it" .) }}{{ end }}
{{- end }}
{{- if not (or (get $.Values.config "auth") (get $.Values.config "allow_anonymous")) }}
{{- $open := not (get $.Values.config "servers") }}
{{- range $server := get $.Values.config "servers" | default dict }}{{ if and $server (not (get $server "auth")) }}{{ $open = true }}{{ end }}{{ end }}
{{- if $open }}{{ fail "config says nothing of who may connect: set config.auth (docs/authorization.md), or config.allow_anonymous=true if everybody may who reaches the Service" }}{{ end }}
{{- end }}
{{- if and (eq .Values.engine.kind "none") (ne (int .Values.replicaCount) 1) }}{{ fail "engine.kind none is for one replica: set replicaCount to 1, or another kind" }}{{ end }}
{{- if and (eq .Values.engine.kind "url") (not .Values.engine.url) }}{{ fail "engine.kind url requires engine.url, as nats://nats:4222 or redis://redis:6379" }}{{ end }}
{{- if and .Values.engine.url (ne .Values.engine.kind "url") }}{{ fail (printf "engine.url is not used with engine.kind %s: set engine.kind to url" .Values.engine.kind) }}{{ end }}
{{- if and .Values.engine.clientCertificate (not .Values.engine.tlsSecret) }}{{ fail "engine.clientCertificate requires engine.tlsSecret, which has it" }}{{ end }}
{{- if and (eq .Values.engine.kind "none") .Values.autoscaling.enabled }}{{ fail "engine.kind none is for one replica: set autoscaling.enabled to false, or another kind" }}{{ end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}{{ fail "autoscaling.minReplicas is more than autoscaling.maxReplicas" }}{{ end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}{{ fail "ingress.enabled requires ingress.hosts, the names by which clients reach it" }}{{ end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}{{ fail "httpRoute.enabled requires httpRoute.parentRefs, which name the Gateway" }}{{ end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.hostnames) }}{{ fail "httpRoute.enabled requires httpRoute.hostnames, the names by which clients reach it" }}{{ end }}
{{- if and .Values.tls.generate .Values.tls.issuer.name }}{{ fail "tls.generate and tls.issuer.name exclude each other: cert-manager makes the certificate, or the chart does" }}{{ end }}
{{- range .Values.extraVolumes }}
{{- if has .name (concat (list "config" "secret" "state" "tmp") (include "mcpbridge.secrets" $ | fromYaml | default dict | keys)) }}{{ fail (printf "extraVolumes: the chart has a volume %s itself: choose another name" .name) }}{{ end }}
{{- end }}
{{- range concat .Values.extraContainers .Values.extraInitContainers }}
{{- if eq .name "mcpbridge" }}{{ fail "extraContainers: the chart has a container mcpbridge itself: choose another name" }}{{ end }}
{{- end }}
{{- if and .Values.tls.clientAuth (not .Values.tls.secret) }}{{ fail "tls.clientAuth requires tls.secret, which has the ca.crt" }}{{ end }}
{{- end -}}

{{/* The block replicas, as YAML. */}}
{{- define "mcpbridge.replicas" -}}
{{- with .Values.engine }}
{{- if eq .kind "dns" }}
peers: dns://{{ include "mcpbridge.headless" $ }}:2528
{{- else }}
engine: {{ ternary (printf "nats://peers:${file:/run/secrets/mcpbridge/nats-password}@%s:4222" (include "mcpbridge.nats" $)) .url (eq .kind "nats") | quote }}
prefix: {{ .prefix | quote }}
{{- if or .tlsSecret .serverName }}
engine_tls:
  {{- if .tlsSecret }}
  ca: /run/secrets/engine-tls/ca.crt
  {{- end }}
  {{- with .serverName }}
  server_name: {{ . | quote }}
  {{- end }}
  {{- if .clientCertificate }}
  cert: /run/secrets/engine-tls/tls.crt
  key: /run/secrets/engine-tls/tls.key
  {{- end }}
{{- end }}
{{- if .credentialsSecret }}
credentials: /run/secrets/engine/nats.creds
{{- end }}
{{- end }}
{{- end }}
keys:
{{- range .Values.peer.keys }}
  - ${file:/run/secrets/mcpbridge/{{ . }}}
{{- end }}
peer: 0.0.0.0:2528
advertise: "[${POD_IP}]:2528"
{{- if include "mcpbridge.tls.peers" . }}
tls:
  cert: /run/secrets/peer-tls/tls.crt
  key: /run/secrets/peer-tls/tls.key
  client_ca: /run/secrets/peer-tls/ca.crt
  server_name: {{ .Values.peer.serverName | default (printf "%s.%s.svc" (include "mcpbridge.headless" .) .Release.Namespace) }}
{{- end }}
{{- end -}}

{{/* What the chart sets, as YAML. */}}
{{- define "mcpbridge.set" -}}
listen: 0.0.0.0:2526
admin: 0.0.0.0:2527
admin_token: ${file:/run/secrets/mcpbridge/admin-token}
metrics_token: ${file:/run/secrets/mcpbridge/metrics-token}
state_dir: /var/lib/mcpbridge
drain_delay: {{ .Values.drainDelaySeconds }}s
drain: {{ .Values.drainSeconds }}s
{{- if include "mcpbridge.tls.clients" . }}
tls:
  cert: /run/secrets/tls/tls.crt
  key: /run/secrets/tls/tls.key
  {{- with .Values.tls.clientAuth }}
  client_ca: /run/secrets/tls/ca.crt
  client_auth: {{ . }}
  {{- end }}
{{- end }}
{{- if ne .Values.engine.kind "none" }}
replicas:
  {{- include "mcpbridge.replicas" . | trim | nindent 2 }}
{{- end }}
allowed_hosts:
{{- range concat (include "mcpbridge.names" . | fromJsonArray) (get .Values.config "allowed_hosts" | default list) | uniq }}
  - {{ . | quote }}
{{- end }}
{{- if not (get $.Values.config "servers") }}
servers:
  notebook:
    builtin: notebook
    {{- if ne .Values.engine.kind "none" }}
    replicas: one
    {{- end }}
{{- end }}
{{- end -}}

{{/* The configuration of mcpbridge, as YAML. */}}
{{- define "mcpbridge.config" -}}
{{- mergeOverwrite (deepCopy .Values.config) (include "mcpbridge.set" . | fromYaml) | toYaml }}
{{- end -}}

{{/* What of the configuration counts after a restart only, as JSON. */}}
{{- define "mcpbridge.restart" -}}
{{- $config := include "mcpbridge.config" . | fromYaml }}
{{- $log := omit (get $config "log" | default dict) "level" }}
{{- $limits := pick (get $config "limits" | default dict) "new_connections" "metric_tools" }}
{{- $replicas := omit (get $config "replicas" | default dict) "keys" }}
{{- range splitList " " (include "mcpbridge.live" .) }}{{ $config = omit $config . }}{{ end }}
{{- merge (dict "log" $log "limits" $limits "replicas" $replicas) (omit $config "log" "limits" "replicas") | toJson }}
{{- end -}}
