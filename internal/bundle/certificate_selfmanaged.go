package bundle

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of what is rendered for [SelfManaged]. They tell whoever keeps the
// installed objects what these are to have and no manifest may say: a private
// key, and the authority that goes with it.
const (
	// AnnotationCertificateNames, on a Secret, has it filled with a certificate
	// for these names of a server, which are separated by commas.
	AnnotationCertificateNames = "olm.operatorframework.io/certificate-names"

	// AnnotationInjectCAFrom, on what calls a webhook or an API service, has it trust the
	// certificate in a Secret, given as namespace/name.
	AnnotationInjectCAFrom = "olm.operatorframework.io/inject-ca-from"
)

type selfManaged struct{}

func (selfManaged) injectAnnotations(namespace, certificate string) map[string]string {
	return map[string]string{AnnotationInjectCAFrom: namespace + "/" + certificate}
}

func (selfManaged) serviceAnnotations(string) map[string]string { return nil }

// objects is a Secret without data: the type for certificates would require
// some from the start. Until it is filled, pods that mount it wait.
func (selfManaged) objects(namespace, deployment string) []map[string]any {
	names := certificateNames(namespace, deployment)
	return []map[string]any{{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata": map[string]any{
			"name":        certificateName(deployment),
			"namespace":   namespace,
			"annotations": map[string]any{AnnotationCertificateNames: strings.Join(names[:], ",")},
		},
		"type": string(corev1.SecretTypeOpaque),
	}}
}
