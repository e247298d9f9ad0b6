package object

import (
	"strings"
	"testing"
)

// TestIsDeferrable (F21, F23): a caller is deferrable if it has a CA certificate, or if its webhooks can prevent pods.
func TestIsDeferrable(t *testing.T) {
	t.Parallel()
	const (
		webhook = `
kind: MutatingWebhookConfiguration
metadata: {annotations: {ANNOTATION: x}}
webhooks:
- {clientConfig: {service: {namespace: ns, name: a}, caBundle: LS0tLS1CRUdJTg==}, rules: [{operations: [CREATE], resources: [pods]}]}
- {clientConfig: {service: {namespace: ns, name: a}, CA}, rules: [{operations: [CREATE], resources: [RESOURCE]}], failurePolicy: POLICY}
`
		crd = `
kind: CustomResourceDefinition
metadata: {annotations: {ANNOTATION: x}}
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {namespace: ns, name: a}, CA}}}}
`
	)
	for name, tc := range map[string]struct {
		of, annotation, ca, resource, policy string
		want                                 bool
	}{
		"a certificate":                      {of: webhook, ca: "caBundle: LS0tLS1CRUdJTg==", want: true},
		"cert-manager":                       {of: webhook, annotation: "cert-manager.io/inject-ca-from", want: true},
		"OpenShift":                          {of: webhook, annotation: "service.beta.openshift.io/inject-cabundle", want: true},
		"the controller":                     {of: webhook, annotation: "olm.operatorframework.io/inject-ca-from", want: true},
		"a placeholder":                      {of: strings.Replace(webhook, "resources: [pods]", "resources: [jobs]", 1), ca: "caBundle: Cg=="},
		"completed by a program":             {of: strings.Replace(webhook, "resources: [pods]", "resources: [jobs]", 1)},
		"completed by a program, about pods": {of: webhook, resource: "pods", policy: "Fail", want: true},
		"completed by a program, may fail":   {of: strings.Replace(webhook, "resources: [pods]", "resources: [jobs]", 1), resource: "pods", policy: "Ignore"},
		"all resources":                      {of: webhook, resource: `"*"`, policy: "Fail", want: true},
		"a CRD with a certificate":           {of: crd, ca: "caBundle: LS0tLS1CRUdJTg==", want: true},
		"a CRD of cert-manager":              {of: crd, annotation: "cert-manager.io/inject-ca-from", want: true},
		"a CRD completed by a program":       {of: crd},
		"an API service":                     {of: "kind: APIService", want: true},
	} {
		t.Run("F23: "+name, func(t *testing.T) {
			t.Parallel()
			or := func(value, otherwise string) string {
				if value == "" {
					return otherwise
				}
				return value
			}
			text := strings.NewReplacer("ANNOTATION", or(tc.annotation, "other"), "CA}", or(tc.ca, "port: 443")+"}",
				"RESOURCE", or(tc.resource, "jobs"), "POLICY", or(tc.policy, "Fail")).Replace(tc.of)
			if got := IsDeferrable(fromYAML(t, text)); got != tc.want {
				t.Errorf("IsDeferrable() = %t", got)
			}
		})
	}
}

// TestSwitchesStorage is F21: a CRD is written in two steps only if nothing is lost by that.
func TestSwitchesStorage(t *testing.T) {
	t.Parallel()
	crd := func(conversion, v1, v2, stored string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  conversion: {strategy: " + conversion + "}\n  versions:\n" +
			v1 + v2 + "status: {storedVersions: [" + stored + "]}\n"
	}
	const (
		v1, v1Stored = "  - {name: v1, served: true, storage: false}\n", "  - {name: v1, served: true, storage: true}\n"
		v2, v2Stored = "  - {name: v2, served: true, storage: false}\n", "  - {name: v2, served: true, storage: true}\n"
	)
	for name, tc := range map[string]struct {
		wanted, live string
		want         bool
	}{
		"another storage version": {wanted: crd("Webhook", v1, v2Stored, ""), live: crd("None", v1Stored, "", "v1"), want: true},
		"another webhook":         {wanted: crd("Webhook", v1, v2Stored, ""), live: crd("Webhook", v1Stored, v2, "v1"), want: true},
		"no webhook":              {wanted: crd("None", v1, v2Stored, ""), live: crd("None", v1Stored, "", "v1")},
		"the same version":        {wanted: crd("Webhook", v1Stored, v2, ""), live: crd("None", v1Stored, v2, "v1")},
		"stored already":          {wanted: crd("Webhook", v1, v2Stored, ""), live: crd("None", v1, v2Stored, "v1, v2")},
		"stored once":             {wanted: crd("Webhook", v1, v2Stored, ""), live: crd("Webhook", v1Stored, v2, "v1, v2")},
		"the old one is dropped":  {wanted: crd("Webhook", "", v2Stored, ""), live: crd("None", v1Stored, "", "v1")},
	} {
		t.Run("F21: "+name, func(t *testing.T) {
			t.Parallel()
			wanted, live := fromYAML(t, tc.wanted), fromYAML(t, tc.live)
			if got := SwitchesStorage(wanted, live); got != tc.want {
				t.Fatalf("SwitchesStorage() = %t", got)
			}
			if !tc.want {
				return
			}
			before := definitionIn(BeforeSwitch(wanted, live))
			if before.Spec.Conversion.Strategy != definitionIn(live).Spec.Conversion.Strategy || storageVersion(before) != "v1" || len(before.Spec.Versions) != 2 {
				t.Errorf("before the switch it is %+v", before.Spec)
			}
			if SwitchesStorage(wanted, live) != tc.want || storageVersion(definitionIn(wanted)) != "v2" {
				t.Error("an argument was changed")
			}
		})
	}
}
