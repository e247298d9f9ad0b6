package webhookcert

import (
	"encoding/base64"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/selfissued"
)

// Introduce returns a caller that is about to be created, or led to another Service, as one that trusts
// from the start what the Secret of its server has. The API server asks a webhook at once, and writes
// would fail as long as nobody trusts it; an API service that nobody trusts counts as one that does not
// answer. The objects are those of [Next]; where none of them is the Secret, or it is empty, the caller
// is returned as it is.
func Introduce(wanted *unstructured.Unstructured, objects []*unstructured.Unstructured, now time.Time) (*unstructured.Unstructured, error) {
	secret := wanted.GetAnnotations()[bundle.AnnotationInjectCAFrom]
	if secret == "" {
		return wanted, nil
	}
	for _, object := range objects {
		found, ok, err := certifiedFrom(object)
		if err != nil {
			return nil, err
		}
		if !ok || found.key() != secret {
			continue
		}
		authorities := selfissued.Read(found.data, now).Bundle()
		if len(authorities) == 0 {
			return wanted, nil
		}
		trusting := wanted.DeepCopy()
		trust(trusting, authorities)
		return trusting, nil
	}
	return wanted, nil
}

// trust changes all ways to call a Service.
func trust(wanted *unstructured.Unstructured, authorities []byte) {
	var configs []map[string]any
	switch wanted.GetKind() {
	case kindCRD:
		configs = append(configs, fieldsOf(wanted.Object, "spec", "conversion", "webhook", "clientConfig"))
	case kindAPIService:
		configs = append(configs, fieldsOf(wanted.Object, "spec"))
	default:
		items, _ := wanted.Object["webhooks"].([]any)
		for _, item := range items {
			webhook, _ := item.(map[string]any)
			configs = append(configs, fieldsOf(webhook, "clientConfig"))
		}
	}
	for _, config := range configs {
		if config["service"] != nil {
			config["caBundle"] = base64.StdEncoding.EncodeToString(authorities)
		}
	}
}

// fieldsOf is nil where there are none.
func fieldsOf(content map[string]any, path ...string) map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(content, path...)
	fields, _ := found.(map[string]any)
	return fields
}
