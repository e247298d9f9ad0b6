package object

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsDeferrable reports whether the write of a caller may be deferred until its servers are ready. A program of the bundle,
// such as a hook of a chart or the operator at its start, adds a missing CA certificate to a webhook configuration or a
// CRD. That program may fail if the object does not exist, so such an object is not deferrable. A configuration whose
// webhook can prevent pods is deferrable all the same: otherwise no pod could start before the webhook answers.
func IsDeferrable(caller *unstructured.Unstructured) bool {
	if caller.GetKind() == APIServiceKind.Kind {
		return true
	}
	for key := range caller.GetAnnotations() {
		if strings.Contains(key, "/inject-") { // cert-manager, OpenShift and the controller have such annotations
			return true
		}
	}
	if caller.GetKind() == DefinitionKind.Kind {
		return isCertificate(valueIn(caller.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle"))
	}
	webhooks, _ := caller.Object["webhooks"].([]any)
	isCompleted := func(webhook any) bool {
		fields, _ := webhook.(map[string]any)
		isCalled := valueIn(fields, "clientConfig", "service") != nil
		return isCalled && !isCertificate(valueIn(fields, "clientConfig", "caBundle"))
	}
	return !slices.ContainsFunc(webhooks, isCompleted) || slices.ContainsFunc(webhooks, preventsPods)
}

// isCertificate returns false for placeholders, such as an encoded newline. Rendering removes them, but manifests of
// earlier revisions can contain them.
func isCertificate(caBundle any) bool {
	encoded, _ := caBundle.(string)
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	return err == nil && bytes.Contains(decoded, []byte("-----BEGIN"))
}

// preventsPods reports whether pods cannot be created while a webhook does not answer. Selectors are not evaluated.
func preventsPods(webhook any) bool {
	fields, _ := webhook.(map[string]any)
	if policy := fields["failurePolicy"]; policy != nil && policy != string(admissionregistrationv1.Fail) {
		return false
	}
	rules, _ := fields["rules"].([]any)
	return slices.ContainsFunc(rules, func(rule any) bool {
		fields, _ := rule.(map[string]any)
		return hasAny(fields["resources"], "pods", "*", "*/*") && hasAny(fields["operations"], string(admissionregistrationv1.Create), "*")
	})
}

func hasAny(list any, wanted ...any) bool {
	items, _ := list.([]any)
	return slices.ContainsFunc(items, func(item any) bool { return slices.Contains(wanted, item) })
}
