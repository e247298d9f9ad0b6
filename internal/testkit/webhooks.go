package testkit

import (
	"fmt"
	"testing/fstest"
)

// WebhookService is the name of the Service in front of the webhooks of an
// operator.
func (o Operator) WebhookService() string { return o.Package + "-service" }

// WebhookSecret is the name of the Secret with the certificate of the webhooks.
func (o Operator) WebhookSecret() string { return o.WebhookService() + "-cert" }

// BundleWithWebhooks is the bundle with things in two versions, v1 with a size
// and v2 with a count, and with webhooks that validate, mutate and convert them.
func (o Operator) BundleWithWebhooks() fstest.MapFS {
	files := o.Bundle()
	csv := files["manifests/csv.yaml"]
	csv.Data = append(csv.Data, fmt.Sprintf(webhooksYAML, o.Package)...)
	crd := files["manifests/crd.yaml"]
	crd.Data = append(crd.Data, secondVersionYAML...)
	return files
}

const webhooksYAML = `  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: validate.%[1]s.test
    deploymentName: %[1]s
    webhookPath: /validate
    targetPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    rules:
    - {apiGroups: [%[1]s.test], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [things]}
  - type: MutatingAdmissionWebhook
    generateName: mutate.%[1]s.test
    deploymentName: %[1]s
    webhookPath: /mutate
    targetPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    rules:
    - {apiGroups: [%[1]s.test], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [things]}
  - type: ConversionWebhook
    generateName: convert.%[1]s.test
    deploymentName: %[1]s
    webhookPath: /convert
    targetPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    conversionCRDs: [things.%[1]s.test]
`

const secondVersionYAML = `  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              count: {type: integer}
`
