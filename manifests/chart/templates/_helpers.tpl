{{/* The reference of an image: by digest, or by tag. Called with (list $ NAME). */}}
{{- define "clusterwright.image" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.image (index . 1) -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $image.repository $image.digest | quote }}
{{- else -}}
{{ printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) | quote }}
{{- end -}}
{{- end -}}

{{/* Settings of the operator that are given. */}}
{{- define "clusterwright.settings" -}}
{{- $lease := .Values.lease -}}
{{- range $entry := list
  (list "CLUSTERWRIGHT_CONCURRENCY" .Values.concurrency)
  (list "CLUSTERWRIGHT_PROBE_INTERVAL_SECONDS" .Values.probeIntervalSeconds)
  (list "CLUSTERWRIGHT_MESSAGE_INTERVAL_SECONDS" .Values.messageIntervalSeconds)
  (list "CLUSTERWRIGHT_LEASE_DURATION_SECONDS" $lease.durationSeconds)
  (list "CLUSTERWRIGHT_RENEW_DEADLINE_SECONDS" $lease.renewDeadlineSeconds)
  (list "CLUSTERWRIGHT_RETRY_PERIOD_SECONDS" $lease.retryPeriodSeconds) }}
{{- if not (kindIs "invalid" (index $entry 1)) }}
- name: {{ index $entry 0 }}
  value: {{ index $entry 1 | int64 | toString | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Proxies, of the operator and of executors. Called with .Values.proxy. */}}
{{- define "clusterwright.proxy" -}}
{{- if or .httpProxy .httpsProxy }}
{{- range $entry := list (list "HTTP_PROXY" .httpProxy) (list "HTTPS_PROXY" .httpsProxy) (list "NO_PROXY" (join "," .noProxy)) }}
{{- with index $entry 1 }}
- name: {{ index $entry 0 }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
- name: CLUSTERWRIGHT_EXECUTOR_PROXIES
  value: "true"
{{- end }}
{{- end -}}
