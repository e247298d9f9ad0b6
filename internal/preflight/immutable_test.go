package preflight_test

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/preflight"
)

var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

func refusal(kind schema.GroupKind, errs ...*field.Error) error {
	return apierrors.NewInvalid(kind, "x", errs)
}

func TestImmutable(t *testing.T) {
	t.Parallel()
	spec := field.NewPath("spec")
	live := func(text string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	claim := schema.GroupKind{Kind: "PersistentVolumeClaim"}
	tests := map[string]struct {
		kind schema.GroupKind
		live *unstructured.Unstructured
		err  error
		want string // empty for no such refusal
		may  bool
	}{
		"a selector": {
			kind: deployment, live: live("{}"), may: true,
			err:  refusal(deployment, field.Invalid(spec.Child("selector"), "a", "field is immutable")),
			want: `spec.selector cannot be changed; delete the Deployment, so that it is created again, or add "Deployment" to spec.install.replaceImmutable`,
		},
		"some of what is wrong": {
			kind: deployment, live: live("{}"), may: true,
			err: refusal(deployment,
				field.Invalid(spec.Child("template", "metadata", "labels"), "a", "`selector` does not match template `labels`"),
				field.Invalid(spec.Child("selector"), "a", "field is immutable")),
			want: `spec.selector cannot be changed; delete the Deployment, so that it is created again, or add "Deployment" to spec.install.replaceImmutable`,
		},
		"a StatefulSet with its volumes": {
			kind: statefulSet, live: live("{spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}}"),
			err: refusal(statefulSet, field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas' are forbidden")),
			want: "spec cannot be changed; delete the StatefulSet, so that it is created again, and with it goes " +
				"what its volumes hold (spec.persistentVolumeClaimRetentionPolicy.whenDeleted is Delete)",
		},
		"data": {
			kind: claim, live: live("{}"),
			err:  refusal(claim, field.Forbidden(spec, "spec is immutable after creation except resources.requests")),
			want: "spec cannot be changed; if what it holds is not needed, delete the PersistentVolumeClaim, so that it is created again",
		},
		"another refusal":   {kind: deployment, live: live("{}"), err: refusal(deployment, field.Invalid(spec.Child("replicas"), -1, "must be greater than or equal to 0"))},
		"another error":     {kind: deployment, live: live("{}"), err: errors.New("field is immutable")},
		"forbidden":         {kind: deployment, live: live("{}"), err: apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("updates to x are forbidden"))},
		"without details":   {kind: deployment, live: live("{}"), err: &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}}},
		"what is not there": {kind: deployment, err: refusal(deployment, field.Invalid(spec.Child("selector"), "a", "field is immutable"))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := preflight.Immutable(tt.kind, tt.live, tt.err)
			if got == nil {
				if tt.want != "" {
					t.Error("it was not recognised")
				}
				return
			}
			if diff := cmp.Diff(tt.want, got.Error()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if may := got.MayReplace([]schema.GroupKind{deployment, statefulSet, claim}); may != tt.may {
				t.Errorf("may be replaced: %t", may)
			}
			if got.MayReplace(nil) {
				t.Error("it may be replaced although nobody has agreed")
			}
			if !apierrors.IsInvalid(got) {
				t.Error("it hides what the API server has said")
			}
		})
	}
}

// TestReplaceable has every kind that the API lets in.
func TestReplaceable(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../config/crd/bases/olm.operatorframework.io_clusterextensions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	kinds := spec.Properties["install"].Properties["replaceImmutable"].Items.Schema.Enum
	if len(kinds) == 0 {
		t.Fatal("the API lets no kind in")
	}
	for _, kind := range kinds {
		var name string
		if err := yaml.Unmarshal(kind.Raw, &name); err != nil {
			t.Fatal(err)
		}
		if got := preflight.Replaceable([]string{name}); len(got) != 1 || got[0].Kind != name {
			t.Errorf("%s is %v", name, got)
		}
	}
}
