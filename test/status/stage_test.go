package status_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// act is something that happens to the world of a scene.
type act func(*testing.T, *scene)

// all lets several things happen, in their order.
func all(acts ...act) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		for _, happens := range acts {
			happens(t, s)
		}
	}
}

// edit replaces texts in files of a bundle, old ones and new ones in turn.
type edit []string

func (e edit) apply(files fstest.MapFS) fstest.MapFS {
	edited := fstest.MapFS{}
	for path, file := range files {
		data := file.Data
		for i := 0; i < len(e); i += 2 {
			data = bytes.ReplaceAll(data, []byte(e[i]), []byte(e[i+1]))
		}
		edited[path] = &fstest.MapFile{Data: data}
	}
	return edited
}

func operator(pkg, version string) testkit.Operator {
	return testkit.Operator{Package: pkg, Version: version, ConfigMaps: []string{"settings"}}
}

func pushBundle(t *testing.T, operator testkit.Operator, files fs.FS) {
	t.Helper()
	if err := theSuite.PushBundle(t.Context(), fmt.Sprintf("%s:v%s", operator.Package, operator.Version), files); err != nil {
		t.Fatal(err)
	}
}

func pushCatalog(t *testing.T, name, tag string, files fs.FS) {
	t.Helper()
	if err := theSuite.PushCatalog(t.Context(), "catalog-"+name+":"+tag, files); err != nil {
		t.Fatal(err)
	}
}

func catalogRef(name, tag string) string { return registryHost + "/catalog-" + name + ":" + tag }

// serve makes a catalog that only the extensions of one scene select, and waits
// until it is served.
func serve(t *testing.T, scene, name string, files fs.FS) {
	t.Helper()
	pushCatalog(t, name, "v1", files)
	createCatalog(t, scene, name)
	eventually(t, "catalog "+name, func(ctx context.Context) error {
		found := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(found.Status.Conditions, ocv1.TypeServing) {
			return fmt.Errorf("conditions are %+v", found.Status.Conditions)
		}
		return nil
	})
}

func createCatalog(t *testing.T, scene, name string) {
	t.Helper()
	err := theSuite.CreateCatalog(t.Context(), name, catalogRef(name, "v1"), func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"scene": scene}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func fromCatalog(scene string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"scene": scene}}
	}
}

func version(versions string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Source.Catalog.Version = versions }
}

// offer publishes versions of the scene's operator that replace each other. The last
// one is made of edited files.
func offer(last edit, versions ...string) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		var operators []testkit.Operator
		for i, version := range versions {
			operators = append(operators, operator(s.name, version))
			files := operators[i].Bundle()
			if i == len(versions)-1 {
				files = last.apply(files)
			}
			pushBundle(t, operators[i], files)
		}
		serve(t, s.name, s.name, testkit.Catalog(registryHost, operators...))
	}
}

// offerRequiring publishes two versions with nothing between them, of which the
// newer one requires a package that nobody has.
func offerRequiring(versions ...string) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		var operators []testkit.Operator
		for _, version := range versions {
			operators = append(operators, operator(s.name, version))
			pushBundle(t, operators[len(operators)-1], operators[len(operators)-1].Bundle())
		}
		operators[len(operators)-1].Properties = []string{
			`{type: olm.package.required, value: {packageName: base, versionRange: ">=1.0.0"}}`,
		}
		catalog := testkit.Catalog(registryHost, operators...)
		serve(t, s.name, s.name, edit{"  replaces: " + operators[0].Name() + "\n", ""}.apply(catalog))
	}
}

// withNamespace returns when the namespace has its ServiceAccount "default": until then, the controller
// reports that the namespace does not exist.
func withNamespace(t *testing.T, s *scene) {
	t.Helper()
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	testkit.Eventually(t, patience, "the ServiceAccount of the namespace", func(ctx context.Context) error {
		return theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: s.name, Name: "default"}, &corev1.ServiceAccount{})
	})
}

func withAccount(t *testing.T, s *scene) {
	t.Helper()
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: installer}})
}

func withRights(t *testing.T, s *scene) {
	t.Helper()
	create(t, binding(s.name))
}

// withoutRights takes them away, and waits until the API server has heard of it.
func withoutRights(t *testing.T, s *scene) {
	t.Helper()
	if err := theSuite.Admin.Delete(t.Context(), binding(s.name)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rights of "+s.name, func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + s.name + ":" + installer,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.name, Verb: "create", Group: "apps", Resource: "deployments"},
		}}
		if err := theSuite.Admin.Create(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed {
			return errors.New("they are still there")
		}
		return nil
	})
}

// withInstaller is all that an extension needs besides a catalog.
var withInstaller = all(withNamespace, withAccount, withRights)

// extend makes the extension of the scene.
func extend(wants string, changes ...func(*ocv1.ClusterExtension)) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		s.create(t, wants, changes...)
	}
}

func change(wants string, changes ...func(*ocv1.ClusterExtension)) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		s.edit(t, wants, func(extension *ocv1.ClusterExtension) {
			for _, change := range changes {
				change(extension)
			}
		})
	}
}

// remove deletes an object of the scene.
func remove(object func(s *scene) client.Object, options ...client.DeleteOption) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		if err := theSuite.Admin.Delete(t.Context(), object(s), options...); err != nil {
			t.Fatal(err)
		}
	}
}

func deployment(s *scene) client.Object {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: s.name}}
}

func settings(s *scene) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "settings"}}
}

func extension(s *scene) client.Object {
	return &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
}

// definition makes a CRD that no extension has brought.
func definition(group, plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}

// crash has the pods of the scene's Deployment fail over and over, as far as a
// cluster without containers can tell; heal ends that.
func crash(t *testing.T, s *scene) { setPods(t, s, corev1.ConditionFalse) }

func heal(t *testing.T, s *scene) { setPods(t, s, corev1.ConditionTrue) }

func setPods(t *testing.T, s *scene, ready corev1.ConditionStatus) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := theSuite.Admin.List(t.Context(), pods, client.InNamespace(s.name)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) == 0 {
		t.Fatal("there is no pod")
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		before := pod.DeepCopy()
		for j := range pod.Status.Conditions {
			if kind := pod.Status.Conditions[j].Type; kind == corev1.PodReady || kind == corev1.ContainersReady {
				pod.Status.Conditions[j].Status = ready
			}
		}
		if err := theSuite.Admin.Status().Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}
