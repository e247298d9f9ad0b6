package bundle

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Placeholder is a caBundle without a certificate that an object contains. The API server stores a
// CustomResourceDefinition with such a value and does not serve its kind. Webhooks and API services with such a value
// do not work until another program replaces it, such as a hook of the chart.
type Placeholder struct {
	Kind, Name string

	// Path is the path of the field.
	Path string

	// Filled is set if an annotation asks another program for the certificate.
	Filled bool

	// Removed is set if the value was removed, which is so in CustomResourceDefinitions.
	Removed bool
}

// String returns a line that reports the placeholder and its removal.
func (p Placeholder) String() string {
	return fmt.Sprintf("%s %s: %s contains no certificate and is left out", p.Kind, excerpt.Quote(p.Name), p.Path)
}

// injectors lists the annotations that ask another program for a certificate. It overwrites any other value.
var injectors = []string{
	AnnotationInjectCAFrom, "cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret",
	"cert-manager.io/inject-apiserver-ca", "service.beta.openshift.io/inject-cabundle",
}

// removePlaceholders removes the placeholders from the CustomResourceDefinitions among objects. It returns those of
// all objects.
func removePlaceholders(objects []*unstructured.Unstructured) []Placeholder {
	var found []Placeholder
	for _, object := range objects {
		for path, config := range ClientConfigs(object) {
			encoded, isText := config["caBundle"].(string)
			if !isText || encoded == "" || hasCertificate(encoded) {
				continue
			}
			placeholder := Placeholder{
				Kind: object.GetKind(), Name: object.GetName(), Path: path + ".caBundle", Filled: isFilled(object), Removed: object.GetKind() == kindCRD,
			}
			if placeholder.Removed {
				delete(config, "caBundle")
			}
			found = append(found, placeholder)
		}
	}
	slices.SortFunc(found, func(a, b Placeholder) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path))
	})
	return found
}

// hasCertificate reads a value as the API server does.
func hasCertificate(encoded string) bool {
	data, err := base64.StdEncoding.DecodeString(encoded)
	return err == nil && x509.NewCertPool().AppendCertsFromPEM(data)
}

func isFilled(object *unstructured.Unstructured) bool {
	for _, injector := range injectors {
		if object.GetAnnotations()[injector] != "" {
			return true
		}
	}
	return false
}

// ClientConfigs returns the parts of an object that may contain a caBundle and a Service, by their paths. They are not
// copies.
func ClientConfigs(object *unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	add := func(path string, content map[string]any, fields ...string) {
		value, _, _ := unstructured.NestedFieldNoCopy(content, fields...)
		if config, ok := value.(map[string]any); ok {
			found[path] = config
		}
	}
	switch object.GroupVersionKind().Group + "/" + object.GetKind() {
	case apiextensionsv1.GroupName + "/" + kindCRD:
		add("spec.conversion.webhook.clientConfig", object.Object, "spec", "conversion", "webhook", "clientConfig")
	case apiregistrationv1.GroupName + "/" + kindAPIService:
		add("spec", object.Object, "spec")
	case admissionregistrationv1.GroupName + "/MutatingWebhookConfiguration", admissionregistrationv1.GroupName + "/ValidatingWebhookConfiguration":
		webhooks, _, _ := unstructured.NestedFieldNoCopy(object.Object, "webhooks")
		items, _ := webhooks.([]any)
		for i, item := range items {
			webhook, _ := item.(map[string]any)
			add(fmt.Sprintf("webhooks[%d].clientConfig", i), webhook, "clientConfig")
		}
	}
	return found
}

// ServiceIn returns the Service that the API server calls because of a part that [ClientConfigs] returns. It is empty
// for a URL, and for an API service without a Service.
func ServiceIn(config map[string]any) types.NamespacedName {
	service, _ := config["service"].(map[string]any)
	name, _ := service["name"].(string)
	namespace, _ := service["namespace"].(string)
	return types.NamespacedName{Namespace: namespace, Name: name}
}
