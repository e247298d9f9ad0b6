package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// certManager are the definitions of cert-manager as far as bundles need them.
func certManager() []client.Object {
	var definitions []client.Object
	for plural, kind := range map[string]string{"certificates": "Certificate", "issuers": "Issuer"} {
		definitions = append(definitions, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".cert-manager.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "cert-manager.io",
				Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
					},
				}},
			},
		})
	}
	return definitions
}

func createAll(t *testing.T, objects []client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := theSuite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, object) })
	}
}

// TestCertManagerGoesAndComesBack under one controller: what is installed meanwhile
// has its certificates from elsewhere, and what was installed before says what it
// lacks, and gets it back.
//
//nolint:paralleltest // other tests install webhooks without cert-manager
func TestCertManagerGoesAndComesBack(t *testing.T) {
	const before, meanwhile = "issued-before", "issued-meanwhile"
	definitions := certManager()
	createAll(t, definitions)
	for _, name := range []string{before, meanwhile} {
		operator := operators(name, "1.0.0")
		pushBundle(t, operator[0], operator[0].BundleWithWebhooks())
		publishCatalog(t, name, testkit.Catalog(registryHost, operator...))
	}
	extend(t, before)
	installed(t, before, "1.0.0")
	certificate := certificateOf(t, before)

	for _, definition := range definitions {
		remove(t, definition)
	}
	conditionContains(t, before, ocv1.TypeReady, "the cluster does not serve kinds of the bundle: Certificate (cert-manager.io/v1), Issuer (cert-manager.io/v1)")
	conditionContains(t, before, ocv1.TypeReady, "they stay in use, and what is there issues others unless it is back within 10 minutes")
	settings := &corev1.ConfigMap{}
	exists(t, settings, before, "settings")
	if err := theSuite.Admin.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a repair of all else", func(ctx context.Context) error {
		return theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: before, Name: "settings"}, &corev1.ConfigMap{})
	})
	extend(t, meanwhile)
	installed(t, meanwhile, "1.0.0")
	exists(t, &corev1.Secret{}, meanwhile, operators(meanwhile, "1.0.0")[0].WebhookSecret())

	createAll(t, certManager())
	installed(t, before, "1.0.0")
	eventually(t, "the Certificate", func(ctx context.Context) error {
		again := certificate.DeepCopy()
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(certificate), again); err != nil {
			return err
		}
		if again.GetUID() == certificate.GetUID() {
			return errors.New("it is the one that was there before")
		}
		return nil
	})
}

// certificateOf is the one Certificate in a namespace.
func certificateOf(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.UnstructuredList{}
	found.SetAPIVersion("cert-manager.io/v1")
	found.SetKind("CertificateList")
	eventually(t, "the Certificate", func(ctx context.Context) error {
		err := theSuite.Admin.List(ctx, found, client.InNamespace(namespace))
		if err == nil && len(found.Items) != 1 {
			err = fmt.Errorf("there are %d", len(found.Items))
		}
		return err
	})
	return &found.Items[0]
}
