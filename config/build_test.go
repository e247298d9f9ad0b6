// Package config_test guards the manifests that are released: it builds them
// as "kubectl apply -k" does.
package config_test

import (
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

const systemNamespace = "olmv1-system"

// build returns the objects of a kustomization, in the order in which they are
// applied. An object with an unknown kind or an unknown field fails the test.
func build(t *testing.T, dir string) []client.Object {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // As kubectl does: namespaces and CRDs come first.
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("building %s: %v", dir, err)
	}
	var objects []client.Object
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, decode(t, text))
	}
	return objects
}

var decoder = sync.OnceValues(func() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, ocv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), nil
})

// decode reads an object strictly.
func decode(t *testing.T, text []byte) client.Object {
	t.Helper()
	decoder, err := decoder()
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, err := decoder.Decode(text, nil, nil)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	object, ok := decoded.(client.Object)
	if !ok {
		t.Fatalf("%T is no object", decoded)
	}
	return object
}

// id names an object as "Kind/name", or "Kind/namespace/name".
func id(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if object.GetNamespace() == "" {
		return kind + "/" + object.GetName()
	}
	return kind + "/" + object.GetNamespace() + "/" + object.GetName()
}

// the returns the one object of type T.
func the[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	found := all[T](objects)
	if len(found) != 1 {
		t.Fatalf("found %d objects of type %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func all[T client.Object](objects []client.Object) []T {
	var found []T
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

func manager(t *testing.T, objects []client.Object) *appsv1.Deployment {
	t.Helper()
	deployment := the[*appsv1.Deployment](t, objects)
	if got := len(deployment.Spec.Template.Spec.Containers); got != 1 {
		t.Fatalf("the Deployment has %d containers, want 1", got)
	}
	return deployment
}

// rules returns the rules of every role by the id of the role.
func rules(objects []client.Object) map[string][]rbacv1.PolicyRule {
	found := map[string][]rbacv1.PolicyRule{}
	for _, role := range all[*rbacv1.ClusterRole](objects) {
		found[id(role)] = role.Rules
	}
	for _, role := range all[*rbacv1.Role](objects) {
		found[id(role)] = role.Rules
	}
	return found
}
