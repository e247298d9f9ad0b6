package chartlife_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestCharts installs, upgrades and deletes each real chart with Helm, and then as an extension in the same
// namespace. After that, it moves a release of the chart.
func TestCharts(t *testing.T) {
	t.Parallel()
	for _, chart := range realCharts(t) {
		t.Run(chart.name, func(t *testing.T) {
			t.Parallel()
			life(t, chart)
			move(t, chart)
		})
	}
}

// step is one of the life of a release: what Helm does, and what becomes of the extension.
type step struct {
	name string
	helm func() error
	ours func(*ocv1.ClusterExtension) // nil for the deletion
	to   archive
}

// changed are values that many charts have.
var changed = map[string]any{"podAnnotations": map[string]any{"life": "test"}, "nodeSelector": map[string]any{"life": "test"}}

func life(t *testing.T, chart realChart) {
	t.Helper()
	name := "l-" + chart.name
	name = name[:min(len(name), 40)]
	makeNamespace(t, name)
	first, last := chart.first(), chart.last()
	steps := []step{
		{name: "install", to: first, helm: func() error { return helmInstall(t, name, first.chart, nil) }},
		{name: "upgrade", to: last, helm: func() error { return helmUpgrade(t, name, last.chart, nil) }, ours: func(ext *ocv1.ClusterExtension) {
			ext.Spec.Source.Bundle.Ref = chart.push(t, last)
		}},
		{name: "change of values", to: last, helm: func() error { return helmUpgrade(t, name, last.chart, changed) }, ours: func(ext *ocv1.ClusterExtension) {
			ext.Spec.Config = &ocv1.ClusterExtensionConfig{ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{
				Raw: []byte(`{"values": {"podAnnotations": {"life": "test"}, "nodeSelector": {"life": "test"}}}`),
			}}
		}},
		{name: "rollback", to: last, helm: func() error { return helmRollback(t, name, 2) }, ours: func(ext *ocv1.ClusterExtension) { ext.Spec.Config = nil }},
	}
	withHelm := lived{began: time.Now()}
	known := map[string]place{}
	for _, step := range steps {
		if err := step.helm(); err != nil {
			if step.name == "install" {
				t.Skipf("Helm does not install it: %v", err)
			}
			t.Fatalf("%s with Helm: %v", step.name, err)
		}
		for _, at := range append(recorded(t, name), hookPlaces(t, name)...) {
			known[at.String()] = at
		}
		withHelm.snapshots = append(withHelm.snapshots, snapshotOf(t, known))
		if step.name != "rollback" {
			withHelm.ended = time.Now() // with Helm, a rollback runs no hooks of an upgrade
		}
	}
	hooks := map[string]place{}
	for _, at := range hookPlaces(t, name) {
		hooks[at.String()] = at
	}
	if err := helmUninstall(t, name); err != nil {
		t.Fatalf("uninstall with Helm: %v", err)
	}
	remove(t, known)

	random := randomIn(t, name, last.chart)
	asExtension := lived{began: time.Now()}
	extend(t, name, chart.push(t, first))
	seen := map[string]place{}
	for i, step := range steps {
		if step.ours != nil {
			update(t, name, step.ours)
		}
		awaitInstalled(t, name, step.to.version)
		for key := range withHelm.snapshots[i] {
			seen[key] = known[key]
		}
		var diff string
		// API services are registered when their Deployments are available.
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
			if diff = cmp.Diff(withHelm.snapshots[i], snapshotOf(t, seen), ignoring(random)...); diff == "" || time.Now().After(end) {
				break
			}
		}
		if diff != "" {
			t.Errorf("after the %s (-with Helm +as an extension):\n%s", step.name, diff)
		}
		if step.name != "rollback" {
			asExtension.ended = time.Now()
		}
	}
	ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := theSite.Admin.Delete(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion of "+name, func(ctx context.Context) error {
		for key, at := range known {
			live, err := theSite.read(ctx, at)
			if err == nil && !object.IsKept(live) && hooks[key].name == "" {
				return fmt.Errorf("%s is still there", key)
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return client.IgnoreNotFound(theSite.Admin.Get(ctx, client.ObjectKey{Name: name}, ext))
	})
	if diff := cmp.Diff(creations(t, hooks, withHelm), creations(t, hooks, asExtension)); diff != "" {
		t.Errorf("hooks that were run (-with Helm +as an extension):\n%s", diff)
	}
	remove(t, known)
}

// lived is the life of a release.
type lived struct {
	began, ended time.Time
	snapshots    []map[string]any
}

// hookPlaces returns the places of the hooks of the last revision, except tests.
func hookPlaces(t *testing.T, name string) []place {
	t.Helper()
	last, err := helm(t, name).Releases.Last(name)
	if err != nil {
		t.Fatal(err)
	}
	var found []place
	for _, hook := range last.Hooks {
		objects, err := helmstore.Objects(hook.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if !slices.Contains(hook.Events, "test") {
				found = append(found, theSite.placeOf(t, object, name))
			}
		}
	}
	return found
}

// snapshotOf returns the stored objects, without the fields that differ between two installations. Missing
// objects are nil.
func snapshotOf(t *testing.T, places map[string]place) map[string]any {
	t.Helper()
	found := map[string]any{}
	for key, at := range places {
		live, err := theSite.read(t.Context(), at)
		switch {
		case apierrors.IsNotFound(err):
			found[key] = nil
		case err != nil:
			t.Fatal(err)
		default:
			found[key] = normalized(live)
		}
	}
	return found
}

func normalized(live *unstructured.Unstructured) map[string]any {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences", "finalizers"} {
		unstructured.RemoveNestedField(live.Object, "metadata", field)
	}
	labels := live.GetLabels()
	for _, label := range []string{environment.OwnerLabel, "olm.operatorframework.io/owner-kind"} {
		delete(labels, label)
	}
	live.SetLabels(labels)
	annotations := live.GetAnnotations()
	if live.GetKind() == "CustomResourceDefinition" { // Helm does not mark those of crds/
		delete(labels, "app.kubernetes.io/managed-by")
		live.SetLabels(labels)
		delete(annotations, "meta.helm.sh/release-name")
		delete(annotations, "meta.helm.sh/release-namespace")
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return key == "deployment.kubernetes.io/revision" })
	live.SetAnnotations(annotations)
	for _, field := range []string{"labels", "annotations"} {
		if values, _, _ := unstructured.NestedMap(live.Object, "metadata", field); len(values) == 0 {
			unstructured.RemoveNestedField(live.Object, "metadata", field)
		}
	}
	for _, path := range [][]string{
		{"status"},
		{"secrets"},
		{"spec", "clusterIP"},
		{"spec", "clusterIPs"},
		{"spec", "healthCheckNodePort"},
		{"spec", "volumeName"},
		{"spec", "caBundle"},
		{"spec", "finalizers"},
	} {
		unstructured.RemoveNestedField(live.Object, path...)
	}
	ports, _, _ := unstructured.NestedSlice(live.Object, "spec", "ports")
	for _, port := range ports {
		if port, isPort := port.(map[string]any); isPort {
			delete(port, "nodePort")
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(live.Object, ports, "spec", "ports") // cannot fail: live has a spec
	}
	return live.Object
}

// randomIn are the objects that differ from one rendering to the next.
func randomIn(t *testing.T, name string, of *helmchart.Chart) map[string]bool {
	t.Helper()
	render := func() map[string]string {
		install := action.NewInstall(&action.Configuration{Log: t.Logf})
		install.DryRun, install.ClientOnly, install.ReleaseName, install.Namespace = true, true, name, name
		install.KubeVersion = &chartutil.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
		made, err := install.Run(of, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := helmstore.Objects(made.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for _, object := range objects {
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			texts[keyOf(object, name)] = string(text)
		}
		return texts
	}
	one, other := render(), render()
	random := map[string]bool{}
	for key, text := range one {
		random[key] = other[key] != text
	}
	return random
}

// keyOf is [place.String] of an object, as far as its kind is served.
func keyOf(object *unstructured.Unstructured, release string) string {
	kind := object.GroupVersionKind()
	mapping, err := theSite.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return ""
	}
	found := place{mapping: mapping, name: object.GetName()}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		found.namespace = object.GetNamespace()
		if found.namespace == "" {
			found.namespace = release
		}
	}
	return found.String()
}

// ignoring leaves out objects that are random.
func ignoring(random map[string]bool) []cmp.Option {
	return []cmp.Option{cmp.FilterPath(func(path cmp.Path) bool {
		for _, part := range path {
			if index, isIndex := part.(cmp.MapIndex); isIndex && index.Key().Kind().String() == "string" && random[index.Key().String()] {
				return true
			}
		}
		return false
	}, cmp.Ignore())}
}

// creations are the hooks that were created during a life, in their order.
func creations(t *testing.T, hooks map[string]place, during lived) []string {
	t.Helper()
	requests, err := environment.RequestsOf(theSite.audit, environment.ControllerUser, "admin")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, request := range requests {
		about := request.ObjectRef
		if request.Verb != "create" || about == nil || about.Subresource != "" || request.IsDryRun() || request.ResponseStatus.Code >= 400 ||
			request.StageTimestamp.Before(during.began) || request.StageTimestamp.After(during.ended) {
			continue
		}
		for key, at := range hooks {
			if at.mapping.Resource.Resource == about.Resource && at.namespace == about.Namespace && at.name == about.Name {
				found = append(found, key)
			}
		}
	}
	return found
}

// remove deletes what is left of a life.
func remove(t *testing.T, places map[string]place) {
	t.Helper()
	for _, at := range places {
		left := &unstructured.Unstructured{}
		left.SetGroupVersionKind(at.mapping.GroupVersionKind)
		left.SetNamespace(at.namespace)
		left.SetName(at.name)
		err := theSite.Admin.Delete(t.Context(), left, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	for key, at := range places {
		eventually(t, key+" is gone", func(ctx context.Context) error {
			_, err := theSite.read(ctx, at)
			if err == nil {
				return fmt.Errorf("%s is still there", key)
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// extend makes an extension of a chart, as a ServiceAccount that may do everything.
func extend(t *testing.T, name, image string) {
	t.Helper()
	const installer = "life-installer"
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "life-" + name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: installer}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
		environment.Extension(name, name, installer, func(ext *ocv1.ClusterExtension) {
			ext.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: image}}
		}),
	} {
		if err := theSite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
