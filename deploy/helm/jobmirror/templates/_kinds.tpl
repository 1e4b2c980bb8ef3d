{{- /* Written by deploy/generate.py. What config.kinds has beside Jobs, as JSON. */ -}}
{{- define "jobmirror.kinds" -}}
{{- $builtIn := dict "appwrapper" "appwrappers.v1beta2.workload.codeflare.dev" "jobset" "jobsets.v1alpha2.jobset.x-k8s.io" "mpijob" "mpijobs.v2beta1.kubeflow.org" "paddlejob" "paddlejobs.v1.kubeflow.org" "pipelinerun" "pipelineruns.v1.tekton.dev" "pytorchjob" "pytorchjobs.v1.kubeflow.org" "raycluster" "rayclusters.v1.ray.io" "rayjob" "rayjobs.v1.ray.io" "rayservice" "rayservices.v1.ray.io" "tfjob" "tfjobs.v1.kubeflow.org" "taskrun" "taskruns.v1.tekton.dev" "trainjob" "trainjobs.v1alpha1.trainer.kubeflow.org" "xgboostjob" "xgboostjobs.v1.kubeflow.org" }}
{{- $found := list }}
{{- range $kind := (dig "kinds" (list) .Values.config) }}
{{- $entry := ternary (dict "kind" $kind) $kind (kindIs "string" $kind) }}
{{- $name := lower (get $entry "kind") }}
{{- $resource := default (get $builtIn $name) (get $entry "resource") }}
{{- if $resource }}
{{- $parts := regexSplit "[.]" $resource 3 }}
{{- $plain := printf "%s.%s" (index $parts 0) (index $parts 2) }}
{{- range $known, $its := $builtIn }}
{{- if eq $its $resource }}{{- $plain = $known }}{{- end }}
{{- end }}
{{- $one := dict "name" $plain "plural" (index $parts 0) "version" (index $parts 1) "group" (index $parts 2) }}
{{- $_ := set $one "timeToLive" (default "" (get $entry "timeToLive")) }}
{{- $found = append $found $one }}
{{- else if ne $name "job" }}
{{- fail (printf "config.kinds: %s is not built in; one of your own needs resource" (get $entry "kind")) }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}
