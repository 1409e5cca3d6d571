{{- define "agentrun-crds.metadata" -}}
labels:
  app.kubernetes.io/name: agentrun
  app.kubernetes.io/part-of: agentrun
  app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
  {{- with .Values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := .Values.annotations }}
{{- if .Values.keep }}
{{- $annotations = merge (dict "helm.sh/resource-policy" "keep") $annotations }}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
