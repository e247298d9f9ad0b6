package applier_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored makes a custom resource in one version, and waits until the API server takes it.
func (f *fixture) stored(t *testing.T, group, version, name string, finalizers ...string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	made.SetAPIVersion(group + "/" + version)
	made.SetKind("Clock")
	made.SetNamespace(f.owner.Namespace)
	made.SetName(name)
	made.SetFinalizers(finalizers)
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = admin.Create(ctx, made)
		return last == nil, nil
	}); err != nil {
		t.Fatal(last)
	}
	return made
}

// newConvertedFixture returns an extension with objects in two versions of its CRD, whose conversion webhook does not answer.
func newConvertedFixture(t *testing.T, name string, byOperator bool) (f *fixture, crd string) {
	t.Helper()
	f = newFixture(t, name)
	group := f.owner.Namespace + ".test"
	crd = "clocks." + group
	t.Cleanup(func() { f.removeDefinition(t, crd) })
	conversion := "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: op, namespace: " +
		f.owner.Namespace + ", path: /convert}}}}"
	f.apply(t, "1.0.0", append(servedBy(t, "Deployment", "r.test/op:1"), clocks(t, group, "v1", "", ""))...)
	f.stored(t, group, "v1", "first")
	stop := f.runPods(t)
	wanted := conversion
	if byOperator {
		wanted = ""
	}
	f.apply(t, "2.0.0", append(servedBy(t, "Deployment", "r.test/op:2"), clocks(t, group, "v2", wanted, "{type: integer}"))...)
	f.repairUntil(t, "stored in the second version", func() bool { return len(f.definition(t, crd).Status.StoredVersions) == 2 })
	f.stored(t, group, "v2", "second")
	if byOperator {
		set := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],`+
			`"clientConfig":{"service":{"name":"op","namespace":"`+f.owner.Namespace+`"}}}}}}`))
		if err := admin.Patch(t.Context(), f.definition(t, crd), set); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	return f, crd
}

// TestConvertedCRDsAreDeleted is F22: a CRD whose conversion webhook does not answer is gone within a minute, and so are
// its custom resources, also if the operator has set the webhook.
func TestConvertedCRDsAreDeleted(t *testing.T) {
	t.Parallel()
	for name, byOperator := range map[string]bool{"F22: of the bundle": false, "F22: set by the operator": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, crd := newConvertedFixture(t, "converted-"+boolText(byOperator), byOperator)
			var last []string
			err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
				left, err := f.applier.UnregisterAPIs(ctx, f.owner)
				if err != nil {
					return false, err
				}
				last = left
				return len(left) == 0, nil
			})
			if err != nil {
				t.Fatalf("%v: left are %q", err, last)
			}
			f.gone(t, crd)
		})
	}
}

// TestRemainingConvertedCRDs is F22: where the garbage collector has begun already, as with a deletion in the foreground, the
// command is named that lets it go on.
func TestRemainingConvertedCRDs(t *testing.T) {
	t.Parallel()
	f, crd := newConvertedFixture(t, "converted-foreground", false)
	if _, err := f.applier.BeginDeletion(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), f.definition(t, crd)); err != nil {
		t.Fatal(err)
	}
	const want = "its conversion webhook does not answer: run `kubectl patch customresourcedefinition "
	var left []string
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (_ bool, err error) {
		left, err = f.applier.Remaining(ctx, f.owner)
		return err == nil && len(left) > 0 && strings.Contains(left[0], want+crd), err
	})
	if err != nil {
		t.Errorf("%v: left are %q", err, left)
	}
}

// TestConvertedCRDsWithFinalizers is F22: custom resources with finalizers keep their CRD, but no webhook is needed any more.
func TestConvertedCRDsWithFinalizers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "converted-held")
	group := f.owner.Namespace + ".test"
	crd := "clocks." + group
	conversion := "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: op, namespace: " +
		f.owner.Namespace + ", path: /convert}}}}"
	f.apply(t, "1.0.0", append(servedBy(t, "Deployment", "r.test/op:1"), clocks(t, group, "v1", conversion, "{type: integer}"))...)
	held := f.stored(t, group, "v1", "held", "clocks.test/f")
	left, err := f.applier.UnregisterAPIs(t.Context(), f.owner)
	if err != nil || len(left) != 1 || !strings.Contains(left[0], crd) {
		t.Fatalf("%q are left (%v)", left, err)
	}
	deletion, err := f.applier.BeginDeletion(t.Context(), f.owner)
	if err != nil || len(deletion.CustomResources) != 1 || deletion.CustomResources[0].Count != 1 {
		t.Errorf("of the deletion is known %+v (%v)", deletion, err)
	}
	f.later.Store(int64(time.Minute))
	for range 2 {
		if left, err = f.applier.UnregisterAPIs(t.Context(), f.owner); err != nil {
			t.Fatal(err)
		}
	}
	if found := f.definition(t, crd).Spec.Conversion.Strategy; found != "None" || len(left) > 0 {
		t.Errorf("the conversion is %q, left are %q", found, left)
	}
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := admin.Patch(t.Context(), held, free); err != nil {
		t.Fatal(err)
	}
	f.gone(t, crd)
}

// gone waits until there is no such CRD.
func (f *fixture) gone(t *testing.T, crd string) {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("apiextensions.k8s.io/v1")
	found.SetKind("CustomResourceDefinition")
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKey{Name: crd}, found)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("%v: the CRD is %v", err, found.Object["status"])
	}
}

// TestConvertedCRDsWithoutPermission is F22: without the permission to delete a CRD, its conversion is ended at once, and
// the garbage collector deletes it. Without any permission, the error has the command.
func TestConvertedCRDsWithoutPermission(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "converted-forbidden")
	group := f.owner.Namespace + ".test"
	crd := "clocks." + group
	t.Cleanup(func() { f.removeDefinition(t, crd) })
	conversion := "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: op, namespace: " +
		f.owner.Namespace + ", path: /convert}}}}"
	f.apply(t, "1.0.0", append(servedBy(t, "Deployment", "r.test/op:1"), clocks(t, group, "v1", conversion, "{type: integer}"))...)
	forbid := func(methods ...string) {
		f.requests.setStop(func(req *http.Request) error {
			if isWrite(req) && slices.Contains(methods, req.Method) && strings.HasSuffix(req.URL.Path, crd) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, crd,
					errors.New(`User "u" cannot delete resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`))
			}
			return nil
		})
	}
	forbid(http.MethodDelete, http.MethodPatch)
	if left, err := f.applier.UnregisterAPIs(t.Context(), f.owner); err == nil || !strings.Contains(err.Error(), "kubectl patch customresourcedefinition "+crd) {
		t.Errorf("without any permission %q are left (%v)", left, err)
	}
	forbid(http.MethodDelete)
	if left, err := f.applier.UnregisterAPIs(t.Context(), f.owner); err != nil || len(left) > 0 {
		t.Errorf("without the permission to delete %q are left (%v)", left, err)
	}
	if found := f.definition(t, crd); found.Spec.Conversion.Strategy != "None" || found.DeletionTimestamp != nil {
		t.Errorf("the CRD is %+v", found.Spec.Conversion)
	}
}

// TestUnreadableCRDs is F22: without the ServiceAccount, a deletion does not wait for CRDs without a conversion webhook.
func TestUnreadableCRDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "converted-unreadable")
	group := f.owner.Namespace + ".test"
	t.Cleanup(func() { f.removeDefinition(t, "clocks."+group) })
	f.apply(t, "1.0.0", clocks(t, group, "v1", "", ""))
	f.disempower(t)
	if left, err := f.applier.UnregisterAPIs(t.Context(), f.owner); err != nil || len(left) > 0 {
		t.Errorf("%q are left (%v)", left, err)
	}
}
