{{/* The names by which clients reach the Service, as JSON. */}}
{{- define "mcpbridge.names" -}}
{{- $name := include "mcpbridge.fullname" . -}}
{{- $svc := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- $names := list $name (printf "%s.%s" $name .Release.Namespace) $svc (printf "%s.%s" $svc .Values.clusterDomain) -}}
{{- if .Values.ingress.enabled }}{{ $names = concat $names .Values.ingress.hosts }}{{ end -}}
{{- if .Values.httpRoute.enabled }}{{ $names = concat $names .Values.httpRoute.hostnames }}{{ end -}}
{{- $names | uniq | toJson -}}
{{- end -}}

{{/* All names of the certificate that is generated or issued, as JSON. */}}
{{- define "mcpbridge.tls.names" -}}
{{- $svc := printf "%s.%s.svc" (include "mcpbridge.headless" .) .Release.Namespace -}}
{{- $names := list $svc (printf "%s.%s" $svc .Values.clusterDomain) -}}
{{- with .Values.peer.serverName }}{{ $names = append $names . }}{{ end -}}
{{- concat (include "mcpbridge.names" . | fromJsonArray) $names | uniq | toJson -}}
{{- end -}}

{{/* The Secret with the certificate that is generated or issued; empty without one. */}}
{{- define "mcpbridge.tls.made" -}}
{{- if .Values.tls.generate }}{{ include "mcpbridge.fullname" . }}-tls
{{- else if .Values.tls.issuer.name }}{{ include "mcpbridge.fullname" . }}-cert
{{- end -}}
{{- end -}}

{{/* The Secrets for HTTPS and between replicas; empty without TLS there. */}}
{{- define "mcpbridge.tls.clients" -}}
{{- if .Values.tls.secret }}{{ .Values.tls.secret }}
{{- else if has "clients" .Values.tls.for }}{{ include "mcpbridge.tls.made" . }}
{{- end -}}
{{- end -}}

{{- define "mcpbridge.tls.peers" -}}
{{- if .Values.peer.tlsSecret }}{{ .Values.peer.tlsSecret }}
{{- else if and (has "peers" .Values.tls.for) (ne .Values.engine.kind "none") }}{{ include "mcpbridge.tls.made" . }}
{{- end -}}
{{- end -}}
