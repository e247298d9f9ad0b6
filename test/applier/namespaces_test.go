package applier_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// TestTriesWhileANamespaceIsLacking: the first one finds out, those after it make no request until
// the namespace is there, however many objects there are.
func TestTriesWhileANamespaceIsLacking(t *testing.T) {
	t.Parallel()
	const many = 40
	f := newFixture(t, "lacking-tries")
	f.lacking = f.owner.Namespace + "-watched"
	objects := manyWith(f.lacking, many)
	try := func() (sent []string, err error) {
		f.requests.take()
		_, err = f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", objects...))
		return f.requests.take(), err
	}
	for i, want := range []bool{true, false, false} {
		sent, err := try()
		missing, ok := errors.AsType[*object.MissingNamespacesError](err)
		if !ok || !slices.Equal(missing.Namespaces, []string{f.lacking}) {
			t.Fatalf("try %d: %v", i, err)
		}
		if len(sent) > many != want || !want && len(sent) > 0 {
			t.Errorf("try %d has sent %d requests: %q", i, len(sent), sent)
		}
	}
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.lacking}})
	f.lacking = ""
	if _, err := try(); err != nil {
		t.Error(err)
	}
}

// TestHookInANamespaceThatIsLacking: it is named, like one of content, and nothing is tried before it is there.
func TestHookInANamespaceThatIsLacking(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "lacking-hooks")
	f.lacking = f.owner.Namespace + "-watched"
	there := configMap("there", "1")
	there.SetNamespace(f.lacking)
	desired := f.wantingHooks("1.0.0", []hook.Hook{hookAt(t, there, "pre-install")}, configMap("a", "1"))
	for i := range 2 {
		f.requests.take()
		_, err := f.applier.Apply(t.Context(), f.owner, desired)
		missing, ok := errors.AsType[*object.MissingNamespacesError](err)
		if sent := f.requests.take(); !ok || !slices.Equal(missing.Namespaces, []string{f.lacking}) || i > 0 && len(sent) > 0 {
			t.Fatalf("try %d: %v, after %q", i, err, sent)
		}
	}
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.lacking}})
	f.lacking = ""
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); err != nil || f.live(t, "a") == nil {
		t.Errorf("then it comes to %v", err)
	}
}

// TestRepairsWhileANamespaceIsLacking: a process that has just begun, and may watch nothing, looks
// at all objects once. What was in the namespace is back with it.
func TestRepairsWhileANamespaceIsLacking(t *testing.T) {
	t.Parallel()
	const many = 40
	f := newFixture(t, "lacking-repairs")
	watched := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace + "-watched"}}
	create(t, watched)
	f.apply(t, "1.0.0", manyWith(watched.Name, many)...)
	if err := admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: watched.Name, Name: "there"}}); err != nil {
		t.Fatal(err)
	}
	f.lacking = watched.Name
	f.restartWith(t, func(config *rest.Config) { config.Wrap(withoutWatches) })
	repair := func() []string {
		t.Helper()
		f.requests.take()
		_, err := f.applier.Repair(t.Context(), f.owner)
		if _, isLacking := errors.AsType[*object.MissingNamespacesError](err); isLacking != (f.lacking != "") {
			t.Fatalf("error %v", err)
		}
		return slices.DeleteFunc(f.requests.take(), func(line string) bool { return !strings.Contains(line, "/configmaps/") })
	}
	repair()
	if sent := repair(); len(sent) > 0 {
		t.Errorf("a second look sends %q", sent)
	}
	f.lacking = ""
	f.eventually(t, "a repair", func() bool {
		repair()
		err := admin.Get(t.Context(), client.ObjectKey{Namespace: watched.Name, Name: "there"}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return !apierrors.IsNotFound(err)
	})
	if sent := repair(); len(sent) > 0 {
		t.Errorf("afterwards it sends %q", sent)
	}
}

// manyWith has one object in a namespace, and many where the extension is installed.
func manyWith(namespace string, many int) []*unstructured.Unstructured {
	there := configMap("there", "1")
	there.SetNamespace(namespace)
	objects := []*unstructured.Unstructured{there}
	for i := range many {
		objects = append(objects, configMap(fmt.Sprintf("c%d", i), "1"))
	}
	return objects
}

// withoutWatches refuses to list and watch, as where rights have gone with a namespace.
func withoutWatches(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/configmaps") {
			return status(http.StatusForbidden, nil)(next, req)
		}
		return next.RoundTrip(req)
	})
}
