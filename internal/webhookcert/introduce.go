package webhookcert

import (
	"encoding/base64"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/selfissued"
)

// Introduce returns an API service, which is about to be created or led to another Service, as
// one that trusts from the start what the Secret of its server holds. The cluster tries the server at once, and
// would take one that it does not trust for one that does not answer. The objects are those
// of [Next]; where none of them is the Secret, the API service is returned as it is.
func Introduce(service *unstructured.Unstructured, objects []*unstructured.Unstructured, now time.Time) (*unstructured.Unstructured, error) {
	secret := service.GetAnnotations()[bundle.AnnotationInjectCAFrom]
	if secret == "" || service.GetKind() != kindAPIService {
		return service, nil
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
		trusting := service.DeepCopy()
		return trusting, unstructured.SetNestedField(trusting.Object, base64.StdEncoding.EncodeToString(authorities), "spec", "caBundle")
	}
	return service, nil
}
