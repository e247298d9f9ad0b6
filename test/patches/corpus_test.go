package patches_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// TestPatchesOfTheCorpus installs every package at its last version that can be rendered.
// After that, nothing is sent for any object. A thorough run installs the first version and
// upgrades it to each of the following ones, and says the last one in other words too.
//
//nolint:paralleltest,tparallel // two packages can have objects of one name, and their definitions
func TestPatchesOfTheCorpus(t *testing.T) {
	t.Parallel()
	corpus := os.DirFS(testkit.Corpus(t))
	bringForeignKinds(t, corpus)
	packages, err := fs.ReadDir(corpus, "bundles")
	if err != nil {
		t.Fatal(err)
	}
	bundles, objects := 0, 0
	for _, pkg := range packages {
		t.Run(pkg.Name(), func(t *testing.T) {
			e := extensionOf(t, pkg.Name())
			var before []*unstructured.Unstructured
			revisions := revisionsOf(t, corpus, pkg.Name())
			if !*thorough {
				revisions = revisions[max(len(revisions)-1, 0):]
			}
			for i, wanted := range revisions {
				e.upgrade(t, wanted, before, *thorough && i == len(revisions)-1)
				before = wanted.objects
				bundles, objects = bundles+1, objects+len(wanted.objects)
			}
		})
	}
	t.Logf("%d bundles with %d objects", bundles, objects)
}

// bringForeignKinds makes kinds that packages take for granted.
func bringForeignKinds(t *testing.T, corpus fs.FS) {
	t.Helper()
	files := []string{"stub-crds.yaml"}
	for _, kind := range []string{"certificates", "issuers"} {
		found, err := fs.Glob(corpus, "bundles/cert-manager/1.7.1/manifests/*"+kind+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	e := extensionIn(t, metav1.NamespaceDefault)
	for _, file := range files {
		definitions, err := manifests(filepath.Join(testkit.Corpus(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.apply(t.Context(), definitions, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// extensionOf may replace what cannot be changed.
func extensionOf(t *testing.T, pkg string) *extension {
	t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": pkg},
	}}
	if _, err := admin.Resource(namespaces).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e := extensionIn(t, pkg)
	e.owner.Replaceable = []schema.GroupKind{
		{Group: "apps", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	}
	return e
}

// revision is a version of a package.
type revision struct {
	version string
	order   bundle.Version
	objects []*unstructured.Unstructured
}

// revisionsOf are those that can be rendered, the lowest first.
func revisionsOf(t *testing.T, corpus fs.FS, pkg string) (revisions []revision) {
	t.Helper()
	versions, err := fs.ReadDir(corpus, "bundles/"+pkg)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		root, err := fs.Sub(corpus, "bundles/"+pkg+"/"+version.Name())
		if err != nil {
			t.Fatal(err)
		}
		order, err := bundle.ParseVersion(version.Name())
		if err != nil {
			t.Fatal(err)
		}
		objects, err := rendered(root, pkg)
		if err != nil {
			t.Logf("%s cannot be rendered: %v", version.Name(), err)
			continue
		}
		revisions = append(revisions, revision{version: version.Name(), order: order, objects: objects})
	}
	slices.SortFunc(revisions, func(a, b revision) int { return a.order.Compare(b.order) })
	return revisions
}

// rendered tells an operator which namespace to watch where it has to be told.
func rendered(root fs.FS, namespace string) ([]*unstructured.Unstructured, error) {
	content, err := bundle.Parse(root)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, watch := range []string{"", namespace, metav1.NamespaceDefault} {
		objects, err := rendering.Objects(bundle.Render(content, bundle.Options{
			InstallNamespace: namespace,
			Config:           bundle.Config{WatchNamespaces: strings.Fields(watch)},
			Certificates:     bundle.CertManager,
		}))
		if err == nil {
			return objects, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// refused are the upgrades that the API server does not take: they remove versions of a kind
// that were stored once.
var refused = []string{"authorino-operator 0.14.0", "kuadrant-operator 0.4.1", "strimzi-kafka-operator 1.0.0"}

// upgrade holds that nothing is sent after an upgrade, and that nothing is to be sent.
func (e *extension) upgrade(t *testing.T, wanted revision, before []*unstructured.Unstructured, reword bool) {
	t.Helper()
	if err := e.apply(t.Context(), wanted.objects, withoutDropped(before, wanted.objects)); err != nil {
		if !slices.Contains(refused, e.owner.Namespace+" "+wanted.version) {
			t.Fatalf("%s: %v", wanted.version, err)
		}
		return
	}
	sent, err := e.repair(t.Context(), wanted.objects...)
	if err != nil {
		t.Errorf("%s: %v", wanted.version, err)
	}
	for _, request := range sent {
		if strings.HasPrefix(request, "POST ") && strings.Contains(request, `"type":"kubernetes.io/service-account-token"`) {
			continue // both are made at a time, and the cluster removes a token that it sees before its ServiceAccount
		}
		t.Errorf("%s: sent although nothing differs: %.2000s", wanted.version, request)
	}
	for _, manifest := range wanted.objects {
		s := e.subject(t, manifest)
		s.first = s.live(t)
		s.judge(t, manifest.GetKind()+" "+manifest.GetName(), triple{before: manifest, wanted: manifest, live: s.first})
		if reword {
			s.reword(t)
		}
		if manifest.GroupVersionKind().Group == "admissionregistration.k8s.io" {
			s.remove(t) // nobody would answer
		}
	}
}

// withoutDropped leaves out the definitions that a revision drops. Some come back in the next
// one, and the API server can take minutes to delete one.
func withoutDropped(before, wanted []*unstructured.Unstructured) []*unstructured.Unstructured {
	kept := map[object.Key]bool{}
	for _, manifest := range wanted {
		kept[object.KeyOf(manifest)] = true
	}
	return slices.DeleteFunc(slices.Clone(before), func(manifest *unstructured.Unstructured) bool {
		key := object.KeyOf(manifest)
		return key.GroupKind == object.DefinitionKind && !kept[key]
	})
}
