package webhookcert

import (
	"encoding/base64"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/selfissued"
)

// Introduce returns what calls a server, and is about to be created or led to another Service, as
// what trusts from the start what the Secret of its server holds. The cluster calls it at
// once: writes that a webhook is asked about would fail until it is trusted, and an API service that is
// not trusted is taken for one that does not answer. The objects are those
// of [Next]; where none of them is the Secret, or it is empty, the caller is returned as it is.
func Introduce(wanted *unstructured.Unstructured, objects []*unstructured.Unstructured, now time.Time) (*unstructured.Unstructured, error) {
	secret := wanted.GetAnnotations()[bundle.AnnotationInjectCAFrom]
	if secret == "" {
		return wanted, nil
	}
	for _, object := range objects {
		holder, ok, err := holderFrom(object)
		if err != nil {
			return nil, err
		}
		if !ok || holder.key() != secret {
			continue
		}
		authorities := selfissued.Read(holder.data, now).Bundle()
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
