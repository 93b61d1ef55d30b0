{{- define "anteroom.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "anteroom.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "anteroom.labels" -}}
{{ include "anteroom.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "anteroom.secret" -}}
{{- .Values.secret.existing | default (include "anteroom.name" .) -}}
{{- end -}}

{{/* The configuration: what the chart knows, and over it what the values say. Ports
without a host are open for IPv4 and IPv6. */}}
{{- define "anteroom.config" -}}
{{- $node := dict "gateway" ":8080" "admin" ":9090" "peer" ":7001" "expect" (int .Values.replicas) "join" (list (printf "%s-nodes:7946" (include "anteroom.name" .))) -}}
{{- if .Values.persistence.enabled -}}
{{- /* A directory in the volume: that itself belongs to root and is open to a group. */ -}}
{{- $_ := set $node "data" "/var/lib/anteroom/data" -}}
{{- end -}}
{{- $security := dict "gossip_key_file" "/run/secrets/anteroom/cluster.key" "admin_plaintext" (not .Values.tls.admin) -}}
{{- if .Values.secret.signingKeys -}}
{{- $_ := set $security "signing_keys" "/run/secrets/anteroom/signing-keys.json" -}}
{{- end -}}
{{- $tls := dict -}}
{{- range $port := list "gateway" "admin" "grpc" -}}
{{- if index $.Values.tls $port -}}
{{- $dir := printf "/run/secrets/anteroom-%s" $port -}}
{{- $_ := set $tls $port (dict "cert" (printf "%s/tls.crt" $dir) "key" (printf "%s/tls.key" $dir)) -}}
{{- end -}}
{{- end -}}
{{- if $tls }}{{ $_ := set $security "tls" $tls }}{{ end -}}
{{- if .Values.tls.grpc }}{{ $_ := set $node "grpc" ":7002" }}{{ end -}}
{{- $known := dict "node" $node "security" $security -}}
{{- $all := mergeOverwrite $known (deepCopy .Values.config) (dict "rooms" .Values.rooms) -}}
{{- if .Values.queues }}{{ $_ := set $all "queues" .Values.queues }}{{ end -}}
{{- range $name := keys .Values.files | sortAlpha }}
# {{ $name }} is {{ index $.Values.files $name | sha256sum }}
{{- end }}
{{ toYaml $all }}
{{- end -}}
