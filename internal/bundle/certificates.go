package bundle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CertificateProvider says who issues the serving certificates of webhooks and
// API services, and tells the API server whom to trust.
type CertificateProvider string

// What can issue certificates.
const (
	// NoCertificates makes bundles with webhooks or API services unsupported.
	NoCertificates CertificateProvider = ""

	// CertManager is https://cert-manager.io.
	CertManager CertificateProvider = "cert-manager"

	// ServiceCA is the service CA operator of OpenShift.
	ServiceCA CertificateProvider = "service-ca"

	// SelfManaged leaves both to whoever keeps the installed objects, see
	// [AnnotationCertificateNames] and [AnnotationInjectCAFrom].
	SelfManaged CertificateProvider = "self-managed"
)

// certificates is what differs between providers. All of them keep the
// certificate of a deployment in the Secret named by [certificateName].
type certificates interface {
	// injectAnnotations, on what calls a deployment, have the CA put into it.
	injectAnnotations(namespace, certificate string) map[string]string

	// serviceAnnotations, on the Service of a deployment, have a certificate issued.
	serviceAnnotations(certificate string) map[string]string

	// objects have a certificate issued for the Service of a deployment.
	objects(namespace, deployment string) []map[string]any
}

// certificates is nil for a provider that there is not.
func (p CertificateProvider) certificates() certificates {
	switch p {
	case CertManager:
		return certManager{}
	case ServiceCA:
		return serviceCA{}
	case SelfManaged:
		return selfManaged{}
	case NoCertificates:
	}
	return nil
}

func (r *renderer) injectCA(metadata *metav1.ObjectMeta, deployment string) {
	if r.certificates != nil {
		annotate(metadata, r.certificates.injectAnnotations(r.namespace, certificateName(deployment)))
	}
}

func (r *renderer) issuedCertificates() error {
	if r.certificates == nil {
		return nil
	}
	serving := r.servingDeployments()
	for _, declared := range r.bundle.deployments() {
		if !serving.Has(declared.Name) {
			continue
		}
		for _, object := range r.certificates.objects(r.namespace, declared.Name) {
			if err := r.add(object); err != nil {
				return err
			}
		}
	}
	return nil
}

func annotate(metadata *metav1.ObjectMeta, annotations map[string]string) {
	for key, value := range annotations {
		metav1.SetMetaDataAnnotation(metadata, key, value)
	}
}

type certManager struct{}

func (certManager) injectAnnotations(namespace, certificate string) map[string]string {
	return map[string]string{"cert-manager.io/inject-ca-from": namespace + "/" + certificate}
}

func (certManager) serviceAnnotations(string) map[string]string { return nil }

const certManagerAPI = "cert-manager.io/v1"

func (certManager) objects(namespace, deployment string) []map[string]any {
	issuer := issuerName(deployment)
	return []map[string]any{
		{
			"apiVersion": certManagerAPI,
			"kind":       "Issuer",
			"metadata":   map[string]any{"name": issuer, "namespace": namespace},
			"spec":       map[string]any{"selfSigned": map[string]any{}},
		},
		{
			"apiVersion": certManagerAPI,
			"kind":       "Certificate",
			"metadata":   map[string]any{"name": certificateName(deployment), "namespace": namespace},
			"spec":       certificateSpec(namespace, deployment, issuer),
		},
	}
}

// certificateNames are those of the Service in front of a deployment, the short
// one first.
func certificateNames(namespace, deployment string) [3]string {
	host := webhookServiceName(deployment) + "." + namespace
	return [3]string{host, host + ".svc", host + ".svc.cluster.local"}
}

func certificateSpec(namespace, deployment, issuer string) map[string]any {
	// X.509 has room for so many characters in a common name; cert-manager
	// refuses more. The DNS names alone are enough for a client to verify.
	const maxCommonName = 64

	names := certificateNames(namespace, deployment)
	host := names[0]
	spec := map[string]any{
		"secretName":  certificateName(deployment),
		"dnsNames":    []any{names[0], names[1], names[2]},
		"usages":      []any{"server auth"},
		"issuerRef":   map[string]any{"name": issuer},
		"duration":    "17520h0m0s",
		"renewBefore": "24h0m0s",
	}
	if len(host) <= maxCommonName {
		spec["commonName"] = host
	}
	return spec
}

type serviceCA struct{}

func (serviceCA) injectAnnotations(_, _ string) map[string]string {
	return map[string]string{"service.beta.openshift.io/inject-cabundle": "true"}
}

func (serviceCA) serviceAnnotations(certificate string) map[string]string {
	return map[string]string{"service.beta.openshift.io/serving-cert-secret-name": certificate}
}

func (serviceCA) objects(_, _ string) []map[string]any { return nil }
