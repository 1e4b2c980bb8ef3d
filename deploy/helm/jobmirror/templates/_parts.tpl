{{- define "jobmirror.labels" -}}
app.kubernetes.io/name: jobmirror
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "jobmirror.https" -}}
{{- if or .Values.config.webhook.enabled .Values.config.access.enabled }}true{{ end }}
{{- end }}

{{- define "jobmirror.pageExposed" -}}
{{- if or .Values.expose.page.gateway.enabled .Values.expose.page.ingress.enabled }}true{{ end }}
{{- end }}

{{- /* Ends with what is missing, or would let tokens be seen by others. */ -}}
{{- define "jobmirror.exposureChecked" -}}
{{- $access := .Values.expose.access }}
{{- $page := .Values.expose.page }}
{{- if or $access.gateway.enabled $access.ingress.enabled }}
{{- if not .Values.config.access.enabled }}{{ fail "expose.access: set config.access.enabled=true as well" }}{{ end }}
{{- if not $access.host }}{{ fail "expose.access.host: is missing; set the name that users will use" }}{{ end }}
{{- end }}
{{- if and $access.ingress.enabled (not $access.ingress.annotations) }}
{{- fail "expose.access.ingress.annotations: are missing; only your controller's annotation for TLS passthrough keeps tokens from it" }}
{{- end }}
{{- if include "jobmirror.pageExposed" . }}
{{- if not (dig "page" "enabled" false .Values.config) }}{{ fail "expose.page: set config.page.enabled=true as well" }}{{ end }}
{{- if not (dig "page" "login" false .Values.config) }}
{{- fail "expose.page: set config.page.login=true as well; without it everybody who reaches the page sees all Jobs" }}
{{- end }}
{{- if not $page.host }}{{ fail "expose.page.host: is missing; set the name that people will use" }}{{ end }}
{{- end }}
{{- if and $page.ingress.enabled (not $page.ingress.tlsSecret) }}
{{- fail "expose.page.ingress.tlsSecret: is missing; tokens must not travel without TLS" }}
{{- end }}
{{- range $name, $part := dict "access" $access "page" $page }}
{{- if and $part.gateway.enabled (not $part.gateway.parentRefs) }}
{{- fail (printf "expose.%s.gateway.parentRefs: are missing; name the listener of a Gateway" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The configuration file: what was given, and what follows from it. */ -}}
{{- define "jobmirror.settings" -}}
{{- $settings := deepCopy .Values.config }}
{{- if and .Values.certManager.enabled (include "jobmirror.https" .) }}
{{- $files := dict "certFile" "/etc/jobmirror-tls/tls.crt" "keyFile" "/etc/jobmirror-tls/tls.key" }}
{{- $_ := set $settings "https" (merge $files (default dict $settings.https)) }}
{{- end }}
{{- if .Values.expose.access.host }}
{{- $_ := set $settings "access" (merge (deepCopy $settings.access) (dict "url" (printf "https://%s" .Values.expose.access.host))) }}
{{- if not .Values.certManager.enabled }}
{{- $https := default dict $settings.https }}
{{- $names := append (dig "names" list $https) .Values.expose.access.host | uniq }}
{{- $_ := set $settings "https" (merge (dict "names" $names) $https) }}
{{- end }}
{{- end }}
{{- if include "jobmirror.pageExposed" . }}
{{- $page := dig "page" dict $settings }}
{{- $hosts := append (dig "hosts" list $page) .Values.expose.page.host | uniq }}
{{- $_ := set $settings "page" (merge (dict "hosts" $hosts "listen" ":8081") $page) }}
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
