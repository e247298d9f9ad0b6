package applier_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/platform"
)

// forgetful gives the fixture the mapper of a platform, which forgets what is gone.
func (f *fixture) forgetful(t *testing.T) {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(theCluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	p, err := platform.New(platform.Config{
		REST: theCluster.RESTConfig(), HTTPClient: httpClient, Changed: func() {}, Regranted: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.Start(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	f.mapper = p.Mapper()
	f.restart(t)
}

// issuers defines Certificates of a group.
func issuers(group string) *apiextensionsv1.CustomResourceDefinition {
	const plural, kind = "certificates", "Certificate"
	anything := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &anything,
				}},
			}},
		},
	}
}

func kindOf(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1", Kind: crd.Spec.Names.Kind}
}

// define has the API server serve a kind, as the mapper of the fixture sees it.
func (f *fixture) define(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	create(t, crd)
	f.waitMapped(t, crd, true)
}

// undefine takes a kind away.
func (f *fixture) undefine(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := admin.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	f.waitMapped(t, crd, false)
}

func (f *fixture) waitMapped(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, want bool) {
	t.Helper()
	const late = 3 * time.Minute // that discovery follows a definition
	for deadline := time.Now().Add(late); ; time.Sleep(100 * time.Millisecond) {
		_, err := f.mapper.RESTMapping(kindOf(crd).GroupKind(), "v1")
		if (err == nil) == want && (err == nil || meta.IsNoMatchError(err)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("err = %v, want it to be served: %t", err, want)
		}
	}
}

// TestAKindGoesAndComesBack has all else be repaired meanwhile.
func TestAKindGoesAndComesBack(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"one process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := strings.ReplaceAll(name, " ", "-") + ".test"
			f := newFixture(t, strings.ReplaceAll(name, " ", "-"))
			f.forgetful(t)
			crd := issuers(group)
			f.define(t, crd)
			thing := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": "b"}}}
			thing.SetGroupVersionKind(kindOf(crd))
			thing.SetName("thing")
			f.apply(t, "1.0.0", thing, configMap("a", "1"))
			f.settle(t)

			f.undefine(t, crd)
			if restarts {
				f.restart(t)
			}
			if err := admin.Delete(t.Context(), f.live(t, "a")); err != nil {
				t.Fatal(err)
			}
			f.eventually(t, "a repair of all else", func() bool {
				_, err := f.applier.Repair(t.Context(), f.owner)
				unknown, ok := errors.AsType[*object.UnknownKindsError](err)
				return ok && slices.Equal(unknown.Kinds, []string{"Certificate (" + group + "/v1)"}) && meta.IsNoMatchError(err) && f.live(t, "a") != nil
			})
			if _, err := f.applier.Repair(t.Context(), f.owner); !meta.IsNoMatchError(err) {
				t.Errorf("err = %v of the next repair", err)
			}

			f.define(t, issuers(group))
			f.eventually(t, "a repair", func() bool {
				_, err := f.applier.Repair(t.Context(), f.owner)
				return err == nil
			})
			if f.get(t, thing).GetLabels()[object.LabelOwnerName] != f.owner.Name {
				t.Error("it is not back")
			}
		})
	}
}

func (f *fixture) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			_, err := f.applier.Repair(t.Context(), f.owner)
			t.Fatalf("%s did not come: %v", what, err)
		}
	}
}

// TestCertManagerGoes has the controller issue certificates in its place, in the
// Secret that cert-manager has left behind.
func TestCertManagerGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "issuer")
	f.forgetful(t)
	crd := issuers("cert-manager.io")
	f.define(t, crd)
	certificate := parse(t, `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: serving}, spec: {secretName: serving-cert}}`)
	f.apply(t, "1.0.0", certificate, configMap("a", "1"))
	left := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.owner.Namespace, Name: "serving-cert",
			Annotations: map[string]string{"cert-manager.io/certificate-name": "another"},
		},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte("c"), corev1.TLSPrivateKeyKey: []byte("k")},
	}
	create(t, left)
	f.undefine(t, crd)

	secret := parse(t, `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: serving-cert}}`)
	secret.SetAnnotations(map[string]string{bundle.AnnotationCertificateNames: "serving." + f.owner.Namespace + ".svc"})
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", secret, configMap("a", "1")))
	if _, ok := errors.AsType[*object.ConflictError](err); !ok {
		t.Fatalf("err = %v, want that the Secret of another Certificate is not taken", err)
	}
	left.Annotations["cert-manager.io/certificate-name"] = "serving"
	if err := admin.Update(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	f.apply(t, "1.0.0", secret, configMap("a", "1"))
	found := &corev1.Secret{}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(left), found); err != nil {
		t.Fatal(err)
	}
	if found.Type != corev1.SecretTypeOpaque || len(found.Data[corev1.TLSCertKey]) < 100 || metav1.GetControllerOf(found) == nil {
		t.Errorf("the Secret is %s with %d bytes of certificate", found.Type, len(found.Data[corev1.TLSCertKey]))
	}
	if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
		t.Error(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); !apierrors.IsNotFound(err) {
		t.Errorf("err = %v of a definition that is gone", err)
	}
}
