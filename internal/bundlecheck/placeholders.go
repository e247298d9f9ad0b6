package bundlecheck

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// placeholders reports values without a certificate. If an annotation asks another program for the certificate, the
// value is only unnecessary, which is a warning.
func (c *checker) placeholders(found []bundle.Placeholder) {
	for _, one := range found {
		if one.Filled {
			c.warnf("", one.Path, "%s %s has a caBundle without a certificate: remove it, since an annotation has it filled in",
				one.Kind, excerpt.Quote(one.Name))
			continue
		}
		c.errorf("", one.Path, "%s %s has a caBundle without a certificate: remove it, and let webhookdefinitions of the ClusterServiceVersion or cert-manager fill it in",
			one.Kind, excerpt.Quote(one.Name))
	}
}

// placeholderNamespace is the namespace in the manifests that Kubebuilder generates, which kustomize replaces.
const placeholderNamespace = "system"

// webhookServices warns about webhooks of Services that are not in the bundle.
func (c *checker) webhookServices(objects []*unstructured.Unstructured) {
	services := sets.New[types.NamespacedName]()
	for _, object := range objects {
		if object.GetKind() == "Service" {
			services.Insert(types.NamespacedName{Namespace: cmp.Or(object.GetNamespace(), installNamespace), Name: object.GetName()})
		}
	}
	for _, object := range objects {
		if object.GetKind() == "APIService" {
			continue
		}
		for path, config := range bundle.ClientConfigs(object) {
			service := bundle.ServiceIn(config)
			if service.Name == "" || services.Has(service) {
				continue
			}
			hint := "install it separately"
			if service.Namespace == placeholderNamespace {
				hint = "this is the placeholder of Kubebuilder: replace it"
			}
			c.warnf("", path+".service", "%s %s calls a webhook of Service %s in namespace %s, which is not in the bundle: %s",
				object.GetKind(), excerpt.Quote(object.GetName()), excerpt.Quote(service.Name), excerpt.Quote(service.Namespace), hint)
		}
	}
}
