# Makes a template of the chart from a CustomResourceDefinition of config/crd/bases:
# make generate
s/{{/{{ "{{" }}/g
1s/^---$/{{- if .Values.crds.enabled }}/
/^  annotations:$/a\
    {{- if .Values.crds.keep }}\
    helm.sh/resource-policy: keep\
    {{- end }}
/^  name: /i\
  labels:\
    {{- include "operator-controller.labels" . | nindent 4 }}
$a\
{{- end }}
