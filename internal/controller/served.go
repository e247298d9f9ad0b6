package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// APIPath is where an API server says what it serves of our API.
var APIPath = "/apis/" + ocv1.GroupVersion.String()

// CheckServed is an error unless the API server has our kinds. One that has just started
// does not have them yet, and one on which nobody has installed them never will. The error
// may be a *meta.NoKindMatchError, or one of the API server.
func CheckServed(mapper meta.RESTMapper) error {
	for _, kind := range []string{"ClusterCatalog", "ClusterExtension"} {
		if _, err := mapper.RESTMapping(ocv1.GroupVersion.WithKind(kind).GroupKind(), ocv1.GroupVersion.Version); err != nil {
			return fmt.Errorf("looking for our definitions, which are in config/crd and in each release: %w", err)
		}
	}
	return nil
}
