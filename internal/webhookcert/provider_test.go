package webhookcert_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// brokenMapper cannot tell what the cluster serves.
type brokenMapper struct {
	meta.RESTMapper

	err error
}

func (m brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, m.err
}

func TestProviderOn(t *testing.T) {
	t.Parallel()
	serving := func(kinds ...schema.GroupVersionKind) meta.RESTMapper {
		mapper := meta.NewDefaultRESTMapper(nil)
		for _, kind := range kinds {
			mapper.Add(kind, meta.RESTScopeRoot)
		}
		return mapper
	}
	certificate := schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}
	serviceCA := schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: "ServiceCA"}
	down := errors.New("the API server is down")
	tests := map[string]struct {
		mapper meta.RESTMapper
		want   bundle.CertificateProvider
		err    error
	}{
		"cert-manager":     {mapper: serving(certificate), want: bundle.CertManager},
		"OpenShift":        {mapper: serving(serviceCA), want: bundle.ServiceCA},
		"both":             {mapper: serving(serviceCA, certificate), want: bundle.CertManager},
		"neither":          {mapper: serving(), want: bundle.SelfManaged},
		"an old version":   {mapper: serving(certificate.GroupKind().WithVersion("v1alpha2")), want: bundle.SelfManaged},
		"cannot be told":   {mapper: brokenMapper{err: down}, err: down},
		"a group is empty": {mapper: brokenMapper{err: &meta.NoResourceMatchError{}}, want: bundle.SelfManaged},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := webhookcert.ProviderOn(tt.mapper)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
