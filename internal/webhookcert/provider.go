package webhookcert

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// ProviderOn picks who issues certificates for webhooks by what the
// cluster serves: we do where nobody else can. That it cannot be told is an
// error: certificates that change hands for a while would fail calls.
func ProviderOn(mapper meta.RESTMapper) (bundle.CertificateProvider, error) {
	for _, provider := range []struct {
		name bundle.CertificateProvider
		kind schema.GroupVersionKind
	}{
		{bundle.CertManager, schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}},
		{bundle.ServiceCA, schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "ServiceCA"}},
	} {
		_, err := mapper.RESTMapping(provider.kind.GroupKind(), provider.kind.Version)
		if err == nil {
			return provider.name, nil
		}
		if !meta.IsNoMatchError(err) {
			return bundle.NoCertificates, fmt.Errorf("looking for %s: %w", provider.name, err)
		}
	}
	return bundle.SelfManaged, nil
}
