package applier_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestRenamedObjects (F17): what the new version brings collides with what it drops.
//
//nolint:tparallel,paralleltest // one after the other: a cluster has one default PriorityClass
func TestRenamedObjects(t *testing.T) {
	t.Parallel()
	web := func(name, ports string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: ` + name + `}, spec: {type: NodePort, selector: {app: web}, ports: [` + ports + `]}}`
	}
	class := func(name, more string) string {
		return `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: ` + name + more + `}, value: 1000, globalDefault: true}`
	}
	const policy = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: renamed.test}, spec: {
		matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [services], operations: [CREATE]}]},
		validations: [{expression: "object.metadata.name != 'denied'", message: "not this one"}]}}`
	const binding = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: renamed.test.all},
		spec: {policyName: renamed.test, validationActions: [Deny]}}`
	const quota = `{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {services: "0"}}}`
	tests := []struct {
		name, extension string
		before, after   []string
		gone            string // object of before that was deleted
		blocks          string // object of before that is kept
	}{
		{"F17: the default PriorityClass", "renamed-class", []string{class("renamed-a", "")}, []string{class("renamed-b", "")}, "PriorityClass renamed-a", ""},
		{"F17: it is kept", "renamed-kept", []string{class("renamed-c", ", annotations: {helm.sh/resource-policy: keep}")}, []string{class("renamed-d", "")}, "", `PriorityClass "renamed-c"`},
		{"F17: a node port", "renamed-port", []string{web("a", "{port: 80, nodePort: 30980}")}, []string{web("b", "{port: 80, nodePort: 30980}")}, "Service a", ""},
		{
			"F17: a node port that moves", "moved-port",
			[]string{web("a", "{port: 80, nodePort: 30981}")},
			[]string{web("a", "{port: 80, nodePort: 30982}"), web("b", "{port: 80, nodePort: 30981}")},
			"", `Service "a"`,
		},
		{"F17: a quota", "renamed-quota", []string{quota}, []string{web("denied", "{port: 80}")}, "ResourceQuota a", ""},
		{"F17: a policy", "renamed-policy", []string{policy, binding}, []string{web("denied", "{port: 80}")}, "", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, tc.extension)
			objects := func(version string, texts []string) []*unstructured.Unstructured {
				all := []*unstructured.Unstructured{configMap("setting", version)}
				for _, text := range texts {
					all = append(all, parse(t, text))
				}
				return all
			}
			f.apply(t, "1.0.0", objects("1", tc.before)...)
			if tc.extension == "renamed-quota" || tc.extension == "renamed-policy" {
				f.awaitDenial(t, parse(t, web("denied", "{port: 80}")))
			}
			result, err := f.applier.Apply(t.Context(), f.owner, f.desired("2.0.0", objects("2", tc.after)...))
			if tc.blocks != "" {
				collision := (*object.CollisionError)(nil)
				if !errors.As(err, &collision) || collision.Other.String() != tc.blocks && !strings.HasPrefix(collision.Other.String(), tc.blocks+" in") {
					t.Fatalf("err = %v", err)
				}
				if result.Began || f.live(t, "setting").Data["key"] != "1" {
					t.Errorf("something was written: %+v", result)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			for _, text := range tc.before {
				one := parse(t, text)
				isGone := !f.exists(t, one)
				if tc.extension != "renamed-policy" && isGone != (one.GetKind()+" "+one.GetName() == tc.gone) {
					t.Errorf("%s %s is gone: %t", one.GetKind(), one.GetName(), isGone)
				}
			}
			for _, object := range objects("2", tc.after) {
				if tc.blocks == "" && !f.exists(t, object) {
					t.Errorf("%s %s does not exist", object.GetKind(), object.GetName())
				}
			}
			for _, object := range append(objects("", tc.before), objects("", tc.after)...) { // the next row has another default
				object.SetNamespace(f.owner.Namespace)
				if err := admin.Delete(t.Context(), object); err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
		})
	}
}

// exists reports whether there is an object.
func (f *fixture) exists(t *testing.T, object *unstructured.Unstructured) bool {
	t.Helper()
	object.SetNamespace(f.owner.Namespace)
	err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy())
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// awaitDenial waits until the API server refuses an object, by a quota whose status it sets as the quota controller
// does after a while.
func (f *fixture) awaitDenial(t *testing.T, denied *unstructured.Unstructured) {
	t.Helper()
	quota := &corev1.ResourceQuota{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "a"}, quota); err == nil {
		counted := quota.DeepCopy()
		counted.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
		if err := admin.Status().Patch(t.Context(), counted, client.MergeFrom(quota)); err != nil {
			t.Fatal(err)
		}
	}
	f.waitRefused(t, denied)
}
