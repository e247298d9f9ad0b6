package webhookcert

import (
	"encoding/base64"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

const (
	kindCRD        = "CustomResourceDefinition"
	kindAPIService = "APIService"
)

// certified is a Secret that has a certificate, or is to have one.
type certified struct {
	object *unstructured.Unstructured
	names  []string
	data   map[string][]byte
}

// certifiedFrom is not ok for an object that is no such Secret.
func certifiedFrom(object *unstructured.Unstructured) (_ certified, ok bool, _ error) {
	names := object.GetAnnotations()[bundle.AnnotationCertificateNames]
	if names == "" || object.GetKind() != "Secret" {
		return certified{}, false, nil
	}
	if count := strings.Count(names, ",") + 1; count > maxNames {
		return certified{}, false, fmt.Errorf("reading Secret %q: annotation %s has %d names, at most %d are allowed",
			object.GetName(), bundle.AnnotationCertificateNames, count, maxNames)
	}
	encoded, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return certified{}, false, fmt.Errorf("reading Secret %q: %w", object.GetName(), err)
	}
	data := make(map[string][]byte, len(encoded))
	for key, value := range encoded {
		if data[key], err = base64.StdEncoding.DecodeString(value); err != nil {
			return certified{}, false, fmt.Errorf("reading %q in Secret %q: %w", key, object.GetName(), err)
		}
	}
	if len(data[corev1.ServiceAccountRootCAKey]) == 0 && len(data[classicAuthority]) > 0 {
		data[corev1.ServiceAccountRootCAKey] = data[classicAuthority]
	}
	return certified{object: object, names: strings.Split(names, ","), data: data}, true, nil
}

// classicAuthority is where classic OLM keeps the authority of a certificate, in Secrets that an extension
// has taken over. Servers go on with that certificate until it is renewed.
const classicAuthority = "olmCAKey"

// key is how callers name the Secret.
func (c certified) key() string { return c.object.GetNamespace() + "/" + c.object.GetName() }

// caller is an object on whose account the API server calls a webhook, or the server of
// an API.
type caller struct {
	object  *unstructured.Unstructured
	configs []clientConfig
}

// clientConfig is one way to call.
type clientConfig struct {
	// webhook is the name of an admission webhook, empty for all others.
	webhook string

	authorities []byte
}

// callersIn returns those that are to trust what a Secret holds, by the Secret.
func callersIn(objects []*unstructured.Unstructured) (map[string][]caller, error) {
	callers := map[string][]caller{}
	for _, object := range objects {
		secret := object.GetAnnotations()[bundle.AnnotationInjectCAFrom]
		if secret == "" {
			continue
		}
		configs, err := clientConfigsOf(object)
		if err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		callers[secret] = append(callers[secret], caller{object: object, configs: configs})
	}
	return callers, nil
}

func clientConfigsOf(object *unstructured.Unstructured) ([]clientConfig, error) {
	switch object.GetKind() {
	case kindCRD:
		config, ok, err := clientConfigFrom("", object.Object, "spec", "conversion", "webhook", "clientConfig")
		if !ok || err != nil {
			return nil, err
		}
		return []clientConfig{config}, nil
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return admissionConfigs(object)
	case kindAPIService:
		config, ok, err := clientConfigFrom("", object.Object, "spec")
		if !ok || err != nil {
			return nil, err
		}
		return []clientConfig{config}, nil
	}
	return nil, nil
}

func admissionConfigs(object *unstructured.Unstructured) ([]clientConfig, error) {
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return nil, err
	}
	var configs []clientConfig
	for _, webhook := range webhooks {
		webhook, _ := webhook.(map[string]any)
		name, _, err := unstructured.NestedString(webhook, "name")
		if err != nil {
			return nil, err
		}
		config, ok, err := clientConfigFrom(name, webhook, "clientConfig")
		if err != nil {
			return nil, err
		}
		if ok {
			configs = append(configs, config)
		}
	}
	return configs, nil
}

// clientConfigFrom is not ok where no Service is called.
func clientConfigFrom(webhook string, content map[string]any, path ...string) (_ clientConfig, ok bool, _ error) {
	found, _, err := unstructured.NestedMap(content, path...)
	if err != nil || found["service"] == nil {
		return clientConfig{}, false, err
	}
	encoded, _, err := unstructured.NestedString(found, "caBundle")
	if err != nil {
		return clientConfig{}, false, err
	}
	authorities, err := base64.StdEncoding.DecodeString(encoded)
	return clientConfig{webhook: webhook, authorities: authorities}, true, err
}
