{{- define "ropewalk.name" -}}
{{- printf "%s-ropewalk" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "ropewalk.labels" -}}
{{ include "ropewalk.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "ropewalk.selector" -}}
app.kubernetes.io/name: ropewalk
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ropewalk.image" -}}
{{- $reference := get .root.Values.image.digests .kind | printf "@%s" -}}
{{- if eq $reference "@" }}{{ $reference = printf ":%s" .root.Values.image.tag }}{{ end -}}
{{ .root.Values.image.registry }}/ropewalk-{{ .kind }}{{ $reference }}
{{- end -}}

{{- define "ropewalk.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end -}}

{{- define "ropewalk.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "ropewalk.resources" -}}
requests: {cpu: {{ .cpu | quote }}, memory: {{ .memory | quote }}}
limits: {memory: {{ .memory | quote }}}
{{- end -}}

{{/* The addresses of the sandbox nodes: each by its own name, so that a worker spreads calls over all of them. */}}
{{- define "ropewalk.sandboxAddresses" -}}
{{- $service := printf "%s-sandbox" (include "ropewalk.name" .) -}}
{{- $addresses := list -}}
{{- range $i := until (int .Values.sandbox.replicas) -}}
{{- $addresses = append $addresses (printf "https://%s-%d.%s.%s.svc:8290" $service $i $service $.Release.Namespace) -}}
{{- end -}}
{{- join "," $addresses -}}
{{- end -}}

{{/* The variables with which a process finds Temporal and the store. "credentials" is the secret of its account at the
     store. */}}
{{- define "ropewalk.servers" -}}
{{- $credentials := .credentials -}}
{{- with .root -}}
- {name: TEMPORAL_ADDRESS, value: {{ .Values.temporal.address | quote }}}
- {name: TEMPORAL_NAMESPACE, value: {{ .Values.temporal.namespace | quote }}}
{{- with .Values.temporal.apiKeySecret }}
- name: TEMPORAL_API_KEY
  valueFrom: {secretKeyRef: {name: {{ . }}, key: api-key}}
{{- end }}
{{- if .Values.temporal.tlsSecret }}
- {name: TEMPORAL_TLS, value: "true"}
- {name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/ropewalk/temporal/tls.crt}
- {name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/ropewalk/temporal/tls.key}
- {name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /etc/ropewalk/temporal/ca.crt}
{{- end }}
{{- with .Values.store }}
- {name: AWS_ENDPOINT_URL_S3, value: {{ .endpoint | quote }}}
- {name: AWS_REGION, value: {{ .region | quote }}}
- {name: ROPEWALK_S3_BUCKET, value: {{ .bucket | quote }}}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ $credentials }}, key: AWS_ACCESS_KEY_ID}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ $credentials }}, key: AWS_SECRET_ACCESS_KEY}}
{{- end }}
- {name: ROPEWALK_LOG_FORMAT, value: json}
{{- end -}}
{{- end -}}

{{- define "ropewalk.serverMounts" -}}
- {name: state, mountPath: /var/lib/ropewalk}
- {name: tmp, mountPath: /tmp}
{{- if .Values.temporal.tlsSecret }}
- {name: temporal, mountPath: /etc/ropewalk/temporal, readOnly: true}
{{- end }}
{{- end -}}

{{- define "ropewalk.serverVolumes" -}}
- {name: state, emptyDir: {}}
- {name: tmp, emptyDir: {}}
{{- with .Values.temporal.tlsSecret }}
- name: temporal
  secret: {secretName: {{ . }}}
{{- end }}
{{- end -}}

{{- define "ropewalk.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}
