{{/* Names are fixed: the operator serves the whole cluster, and a second release must not fight the first. */}}
{{- define "agentrun.selector" -}}
app.kubernetes.io/name: agentrun
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "agentrun.labels" -}}
{{ include "agentrun.selector" . }}
app.kubernetes.io/part-of: agentrun
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "agentrun.metadata" -}}
name: agentrun-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "agentrun.labels" . | nindent 2 }}
{{- end }}

{{- define "agentrun.clusterMetadata" -}}
name: agentrun-{{ .component }}
labels:
  {{- include "agentrun.labels" . | nindent 2 }}
{{- end }}

{{- define "agentrun.image" -}}
{{- required "set image to the image of operator and gateway, such as REPOSITORY:TAG or REPOSITORY@sha256:DIGEST" .Values.image }}
{{- end }}

{{/* What Pod Security `restricted` asks for, and a read-only root besides. */}}
{{- define "agentrun.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "agentrun.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "agentrun.pullSecrets" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Where a component's Pods may run; gets its values. */}}
{{- define "agentrun.placement" -}}
{{- $set := dict }}
{{- range $key := list "priorityClassName" "nodeSelector" "tolerations" "affinity" }}
{{- with index $ $key }}
{{- $_ := set $set $key . }}
{{- end }}
{{- end }}
{{- if $set }}
{{- toYaml $set }}
{{- end }}
{{- end }}

{{/* What the Pods of both Deployments share; `.values` are those of the component. */}}
{{- define "agentrun.pod" -}}
serviceAccountName: agentrun-{{ .component }}
enableServiceLinks: false
terminationGracePeriodSeconds: 30
securityContext:
  {{- include "agentrun.podSecurity" . | nindent 2 }}
{{- with include "agentrun.pullSecrets" .root }}
{{ . }}
{{- end }}
{{- with include "agentrun.placement" .values }}
{{ . }}
{{- end }}
topologySpreadConstraints:
  {{- with .values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "agentrun.selector" . | nindent 8 }}
  {{- end }}
{{- end }}

{{- define "agentrun.podMetadata" -}}
labels:
  {{- $own := include "agentrun.labels" . | fromYaml }}
  {{- toYaml (merge $own .values.podLabels) | nindent 2 }}
{{- with .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "agentrun.apiServerEgress" -}}
- to:
    {{- range .Values.networkPolicy.apiServerCidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{/* Objects that exist only while an uninstallation drains; gets the order. */}}
{{- define "agentrun.drainHook" -}}
annotations:
  helm.sh/hook: pre-delete
  helm.sh/hook-weight: {{ . | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
  argocd.argoproj.io/hook: PreDelete
  argocd.argoproj.io/sync-wave: {{ . | quote }}
  argocd.argoproj.io/hook-delete-policy: BeforeHookCreation,HookSucceeded
{{- end }}
