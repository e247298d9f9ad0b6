package applier_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// selecting is a Deployment with a selector of its own.
func selecting(t *testing.T, value string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, strings.ReplaceAll(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {
		replicas: 0, selector: {matchLabels: {app: VALUE}},
		template: {metadata: {labels: {app: VALUE}}, spec: {containers: [{name: c, image: registry.test/c}]}}}}`, "VALUE", value))
}

// immutables are changes that no API server makes to an object, by kind.
func immutables(t *testing.T) map[string]struct {
	before, after *unstructured.Unstructured
	fields        []string
} {
	t.Helper()
	type change = struct {
		before, after *unstructured.Unstructured
		fields        []string
	}
	pod := `metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: registry.test/IMAGE}]`
	both := func(before, after string, fields ...string) change {
		return change{before: parse(t, before), after: parse(t, after), fields: fields}
	}
	return map[string]change{
		"Deployment": {selecting(t, "a"), selecting(t, "b"), []string{"spec.selector"}},
		"DaemonSet": both(
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {selector: {matchLabels: {app: a}}, template: {`+pod+`}}}}`,
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {selector: {matchLabels: {app: b}}, template: {`+strings.ReplaceAll(pod, "app: a", "app: b")+`}}}}`,
			"spec.selector"),
		"StatefulSet": both(
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {replicas: 0, serviceName: a, selector: {matchLabels: {app: a}}, template: {`+pod+`}}}}`,
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {replicas: 0, serviceName: b, selector: {matchLabels: {app: a}}, template: {`+pod+`}}}}`,
			"spec.serviceName"),
		"Job": both(
			`{apiVersion: batch/v1, kind: Job, metadata: {name: d}, spec: {suspend: false, template: {`+pod+`, restartPolicy: Never}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: d}, spec: {suspend: false, template: {`+strings.ReplaceAll(pod, "IMAGE", "other")+`, restartPolicy: Never}}}}`,
			"spec.template"),
		"Service": both(
			`{apiVersion: v1, kind: Service, metadata: {name: d}, spec: {ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: d}, spec: {clusterIP: None, ports: [{port: 80}]}}`,
			"spec.clusterIPs[0]"),
		"RoleBinding": both(
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: d}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: d}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}}`,
			"roleRef"),
		"ClusterRoleBinding": both(
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: replaced}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: replaced}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}}`,
			"roleRef"),
		"PriorityClass": both(
			`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: replaced}, value: 1}`,
			`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: replaced}, value: 2}`,
			"value"),
		"StorageClass": both(
			`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: replaced}, provisioner: a.test, parameters: {a: b}}`,
			`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: replaced}, provisioner: a.test, parameters: {a: c}}`,
			"parameters"),
	}
}

// TestImmutableFields has each kind that can be replaced refuse a change, and take
// it when the user agrees.
func TestImmutableFields(t *testing.T) {
	t.Parallel()
	for kind, tt := range immutables(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "immutable-"+strings.ToLower(kind))
			f.apply(t, "1.0.0", tt.before, configMap("a", "1"))
			first := f.uidOf(t, tt.before)

			result, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", tt.after, configMap("a", "2")))
			immutable, ok := errors.AsType[*preflight.ImmutableError](err)
			if !ok || result.Began {
				t.Fatalf("err = %v, began: %t", err, result.Began)
			}
			if diff := cmp.Diff(tt.fields, immutable.Fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if got := f.live(t, "a").Data["key"]; got != "1" {
				t.Errorf("something was written: %q", got)
			}

			f.owner.Replaceable = preflight.Replaceable([]string{kind})
			result = f.apply(t, "1.1.0", tt.after, configMap("a", "2"))
			if second := f.uidOf(t, tt.after); second == first {
				t.Error("the object was not replaced")
			}
			if notes := strings.Join(result.Notes, "; "); !strings.Contains(notes, kind+` "`) || !strings.Contains(notes, "is deleted and created again") {
				t.Errorf("notes are %q", notes)
			}
			f.settle(t)
			rested, err := f.applier.Repair(t.Context(), f.owner)
			for key, change := range rested.Changes {
				if change != object.Unchanged {
					t.Errorf("it does not come to rest: %s was %s", key, change)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func (f *fixture) get(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	namespace := f.owner.Namespace
	switch object.GetKind() {
	case "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass", "StorageClass":
		namespace = ""
	}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: object.GetName()}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

func (f *fixture) uidOf(t *testing.T, object *unstructured.Unstructured) types.UID {
	t.Helper()
	return f.get(t, object).GetUID()
}

func TestWhatWouldNotBeTakenIsNotDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "replaced-for-nothing")
	f.owner.Replaceable = preflight.Replaceable([]string{"Deployment"})
	f.apply(t, "1.0.0", selecting(t, "a"))
	first := f.uidOf(t, selecting(t, "a"))
	f.forbidDeployments(t)
	result, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", selecting(t, "b")))
	f.checkRefused(t, result, err, "d")
	if !strings.Contains(err.Error(), "no deployments here") || f.uidOf(t, selecting(t, "a")) != first {
		t.Errorf("err = %v, or the object is gone", err)
	}
}

// TestDeathBetweenDeletionAndCreation leaves no object, which the next process
// creates.
func TestDeathBetweenDeletionAndCreation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "replaced-halfway")
	f.owner.Replaceable = preflight.Replaceable([]string{"Deployment"})
	f.apply(t, "1.0.0", selecting(t, "a"))
	var deleted atomic.Bool
	f.requests.setStop(func(req *http.Request) error {
		if deleted.Load() {
			return errors.New("the process is dead")
		}
		if isWrite(req) && req.Method == http.MethodDelete && strings.HasSuffix(req.URL.Path, "/deployments/d") {
			deleted.Store(true)
		}
		return nil
	})
	if _, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", selecting(t, "b"))); err == nil || !deleted.Load() {
		t.Fatalf("err = %v, deleted: %t", err, deleted.Load())
	}
	err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "d"}, &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("err = %v, want that it is gone", err)
	}
	f.restart(t)
	if state := f.observe(t); state.Installed == nil || !state.Unfinished {
		t.Fatalf("state is %+v", state)
	}
	f.apply(t, "1.1.0", selecting(t, "b"))
	if got := f.get(t, selecting(t, "b")).GetLabels()[object.LabelOwnerName]; got != f.owner.Name {
		t.Errorf("the object is of %q", got)
	}
}

// TestReplacedTakesExactlyWhatWasSeen has somebody else be faster.
func TestReplacedTakesExactlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "replaced-another")
	f.owner.Replaceable = preflight.Replaceable([]string{"Deployment"})
	f.apply(t, "1.0.0", selecting(t, "a"))
	theirs := selecting(t, "c")
	theirs.SetNamespace(f.owner.Namespace)
	var swapped atomic.Bool
	f.requests.setStop(func(req *http.Request) error {
		isDeletion := isWrite(req) && req.Method == http.MethodDelete && strings.HasSuffix(req.URL.Path, "/deployments/d")
		if !isDeletion || !swapped.CompareAndSwap(false, true) {
			return nil
		}
		ours := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "d"}}
		if err := admin.Delete(context.WithoutCancel(req.Context()), ours); err != nil {
			return err
		}
		return admin.Create(context.WithoutCancel(req.Context()), theirs)
	})
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", selecting(t, "b")))
	if err == nil || !swapped.Load() {
		t.Fatalf("err = %v, swapped: %t", err, swapped.Load())
	}
	if got := f.uidOf(t, selecting(t, "c")); got != theirs.GetUID() {
		t.Error("what somebody else has made was deleted")
	}
}

func TestRepairReplacesToo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "replaced-by-repair")
	f.apply(t, "1.0.0", selecting(t, "a"))
	f.settle(t)
	changed := f.get(t, selecting(t, "a"))
	owners := changed.GetOwnerReferences()
	if err := admin.Delete(t.Context(), changed, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	other := selecting(t, "b")
	other.SetNamespace(f.owner.Namespace)
	other.SetOwnerReferences(owners)
	other.SetLabels(changed.GetLabels())
	if err := admin.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	_, err := f.applier.Repair(t.Context(), f.owner)
	if _, ok := errors.AsType[*preflight.ImmutableError](err); !ok {
		t.Fatalf("err = %v", err)
	}
	f.owner.Replaceable = preflight.Replaceable([]string{"Deployment"})
	if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	selector, _, _ := unstructured.NestedString(f.get(t, selecting(t, "a")).Object, "spec", "selector", "matchLabels", "app")
	if selector != "a" {
		t.Errorf("the selector is %q", selector)
	}
}

// TestVolumesAreNotReplaced has a StatefulSet that would take its volumes along.
func TestVolumesAreNotReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "replaced-volumes")
	f.owner.Replaceable = preflight.Replaceable([]string{"StatefulSet"})
	change := immutables(t)["StatefulSet"]
	for _, object := range []*unstructured.Unstructured{change.before, change.after} {
		if err := unstructured.SetNestedField(object.Object, "Delete", "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"); err != nil {
			t.Fatal(err)
		}
	}
	f.apply(t, "1.0.0", change.before)
	first := f.uidOf(t, change.before)
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", change.after))
	if immutable, ok := errors.AsType[*preflight.ImmutableError](err); !ok || immutable.Held == "" || f.uidOf(t, change.before) != first {
		t.Fatalf("err = %v", err)
	}
}

// TestDataIsNeverReplaced has a claim of a volume refuse to shrink.
func TestDataIsNeverReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "replaced-data")
	f.owner.Replaceable = preflight.Replaceable([]string{"PersistentVolumeClaim", "ConfigMap", "Deployment"})
	claim := func(mode string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d}, spec: {
			accessModes: [`+mode+`], resources: {requests: {storage: 1Gi}}}}`)
	}
	f.apply(t, "1.0.0", claim("ReadWriteOnce"))
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", claim("ReadWriteMany")))
	if immutable, ok := errors.AsType[*preflight.ImmutableError](err); !ok || immutable.Kind.Kind != "PersistentVolumeClaim" {
		t.Fatalf("err = %v", err)
	}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "d"}, &corev1.PersistentVolumeClaim{}); err != nil {
		t.Error(err)
	}
}

// TestReplacedWaitsForFinalizers says for whom it waits, and goes on after them. The log has
// the deletion, although nothing was replaced.
func TestReplacedWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "replaced-held")
	f.owner.Replaceable = preflight.Replaceable([]string{"Deployment"})
	f.apply(t, "1.0.0", selecting(t, "a"))
	hold := func(finalizers ...string) {
		t.Helper()
		held := f.get(t, selecting(t, "a"))
		changed := held.DeepCopy()
		changed.SetFinalizers(finalizers)
		if err := admin.Patch(t.Context(), changed, client.MergeFrom(held)); err != nil {
			t.Fatal(err)
		}
	}
	hold("somebody.test/holds")
	ctx, lines := logged(t)
	_, err := f.applier.Apply(ctx, f.owner, f.desired("1.1.0", selecting(t, "b")))
	if err == nil || !strings.Contains(err.Error(), "it waits for finalizers [somebody.test/holds]") {
		t.Fatalf("err = %v", err)
	}
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], `"msg"="deleted"`) || !strings.Contains(got[0], `"kind"="Deployment"`) ||
		!strings.Contains(got[0], `"fields"="spec.selector"`) {
		t.Errorf("the log has %q", got)
	}
	hold()
	f.apply(t, "1.1.0", selecting(t, "b"))
	if got, _, _ := unstructured.NestedString(f.get(t, selecting(t, "b")).Object, "spec", "selector", "matchLabels", "app"); got != "b" {
		t.Errorf("it selects %q", got)
	}
}
