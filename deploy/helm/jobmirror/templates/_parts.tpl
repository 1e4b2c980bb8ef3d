{{- define "jobmirror.labels" -}}
app.kubernetes.io/name: jobmirror
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "jobmirror.https" -}}
{{- if or .Values.config.webhook.enabled .Values.config.access.enabled }}true{{ end }}
{{- end }}

{{- /* The configuration file: what was given, and what follows from it. */ -}}
{{- define "jobmirror.settings" -}}
{{- $settings := deepCopy .Values.config }}
{{- if and .Values.certManager.enabled (include "jobmirror.https" .) }}
{{- $files := dict "certFile" "/etc/jobmirror-tls/tls.crt" "keyFile" "/etc/jobmirror-tls/tls.key" }}
{{- $_ := set $settings "https" (merge $files (default dict $settings.https)) }}
{{- end }}
{{- $_ := set $settings "namespace" .Release.Namespace }}
{{- toYaml $settings }}
{{- end }}

{{/* The namespaces of workers.secretSources, each once, as JSON. */}}
{{- define "jobmirror.sourceNamespaces" -}}
{{- $all := list }}
{{- range (dig "secretSources" (list) .Values.config.workers) }}
{{- $all = concat $all .namespaces }}
{{- end }}
{{- $all | uniq | sortAlpha | toJson }}
{{- end }}

{{/* Those of workers.clusterProfiles, where it is enabled. */}}
{{- define "jobmirror.profileNamespaces" -}}
{{- if (dig "clusterProfiles" "enabled" false .Values.config.workers) }}
{{- .Values.config.workers.clusterProfiles.namespaces | toJson }}
{{- else }}
{{- list | toJson }}
{{- end }}
{{- end }}
