package plan

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Objects of several waves. The API server of a test refuses or misplaces some of them.
var installedObjects = []string{
	`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}, data: {key: "1"}}`,
	`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns}, data: {key: "1"}}`,
	`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}}`,
	`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}}`,
}

func installedMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Service"), {Group: "apps", Version: "v1", Kind: "Deployment"},
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return mapper
}

// refuse makes a request for an object fail.
func refuse(client *dynamicfake.FakeDynamicClient, verb, resource, name string, err error) {
	client.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		named := ""
		switch action := action.(type) {
		case clienttesting.CreateAction:
			created, _ := action.GetObject().(metav1.Object) // all that is created is an object
			named = created.GetName()
		case clienttesting.GetAction:
			named = action.GetName()
		}
		return named == name, nil, err
	})
}

// TestRestoreGoesOn is F11: an object that cannot be read or written does not stop the repair of all others.
func TestRestoreGoesOn(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("exceeded quota: q"))
	webhook := apierrors.NewInternalError(errors.New(`failed calling webhook "w"`))
	foreign := stepOf(t, installedObjects[0]).Object
	for name, tc := range map[string]struct {
		live    *unstructured.Unstructured
		refuse  func(*dynamicfake.FakeDynamicClient)
		confirm error
		want    []string // names of objects that are created
		failed  []string // parts of the error
	}{
		"F11: nothing is refused": {want: []string{"a", "b", "s", "d"}},
		"F11: by a quota": {
			refuse: func(c *dynamicfake.FakeDynamicClient) { refuse(c, "create", "configmaps", "a", quota) },
			want:   []string{"b", "s", "d"}, failed: []string{`ConfigMap "a"`, "exceeded quota"},
		},
		"F11: by a webhook that fails": {
			refuse: func(c *dynamicfake.FakeDynamicClient) { refuse(c, "create", "services", "s", webhook) },
			want:   []string{"a", "b", "d"}, failed: []string{`Service "s"`, "failed calling webhook"},
		},
		"F11: two in two waves": {
			refuse: func(c *dynamicfake.FakeDynamicClient) {
				refuse(c, "create", "configmaps", "a", quota)
				refuse(c, "create", "services", "s", webhook)
			},
			want: []string{"b", "d"}, failed: []string{`ConfigMap "a"`, `Service "s"`},
		},
		"F11: one cannot be read": {
			refuse: func(c *dynamicfake.FakeDynamicClient) {
				refuse(c, "get", "configmaps", "a", apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no")))
			},
			want: []string{"b", "s", "d"}, failed: []string{`reading ConfigMap "a"`},
		},
		"F11: one has another owner":     {live: foreign, want: []string{"b", "s", "d"}, failed: []string{`ConfigMap "a" already exists`}},
		"the extension is being deleted": {confirm: object.ErrOwnerGone, failed: []string{object.ErrOwnerGone.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stored []runtime.Object
			if tc.live != nil {
				stored = append(stored, tc.live.DeepCopy())
			}
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), stored...)
			if tc.refuse != nil {
				tc.refuse(client)
			}
			planner := NewPlanner(client, installedMapper(), owner, func(context.Context, object.Owner) error { return tc.confirm })
			planned, err := planner.PlanRepair(t.Context(), ownedBy(t, owner, installedObjects), nil)
			if err != nil {
				t.Fatal(err)
			}
			executor := planner.Executor()
			err = executor.Restore(t.Context(), planned)
			if (err != nil) != (len(tc.failed) > 0) {
				t.Errorf("the error is %v", err)
			}
			for _, part := range tc.failed {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
			var created []string
			for _, step := range planned.Steps {
				if executor.Progress.Changes[step.Key] == object.Created {
					created = append(created, step.Key.Name)
				}
			}
			if diff := cmp.Diff(tc.want, created); diff != "" {
				t.Errorf("created (-want +got):\n%s", diff)
			}
		})
	}
}

func ownedBy(t *testing.T, owner object.Owner, texts []string) []*unstructured.Unstructured {
	t.Helper()
	var owned []*unstructured.Unstructured
	for _, text := range texts {
		owned = append(owned, owner.Own(stepOf(t, text).Object))
	}
	return owned
}

// TestUpgradesGoOn is F11: an object that the API server refuses blocks only upgrades that change it.
func TestUpgradesGoOn(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
	changed := func(i int) []string {
		texts := append([]string(nil), installedObjects...)
		texts[i] = strings.Replace(texts[i], "}}", `}, data: {key: "2"}}`, 1)
		return texts
	}
	for name, tc := range map[string]struct {
		wanted, before []string
		err            error
		written        bool // it is refused when it is written, and not in a dry run
		want           bool
	}{
		"F11: the refused object is not touched":         {wanted: changed(3), before: installedObjects, want: true},
		"F11: it is refused when it is written":          {wanted: changed(3), before: installedObjects, written: true, want: true},
		"F11: the refused object is changed":             {wanted: changed(2), before: installedObjects},
		"F11: the refused object is not installed":       {wanted: changed(3), before: append(append([]string(nil), installedObjects[:2]...), installedObjects[3])},
		"F11: the API server has too many requests":      {wanted: changed(3), before: installedObjects, err: apierrors.NewTooManyRequests("later", 1)},
		"F11: the object was changed at the same moment": {wanted: changed(3), before: installedObjects, err: apierrors.NewConflict(schema.GroupResource{}, "s", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
			refusal := tc.err
			if refusal == nil {
				refusal = apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "s", nil)
			}
			refuse(client, "create", "services", "s", refusal)
			planner := NewPlanner(client, installedMapper(), owner, func(context.Context, object.Owner) error { return nil })
			before := ownedBy(t, owner, tc.before)
			planned, err := planner.Plan(ownedBy(t, owner, tc.wanted), before, nil)
			if err != nil {
				t.Fatal(err)
			}
			planned.Installed = func(context.Context) ([]*unstructured.Unstructured, error) { return before, nil }
			executor := planner.Executor()
			if err = planner.Inspect(t.Context(), planned); err != nil && tc.want {
				t.Fatal(err)
			}
			for i := range planned.Steps {
				// The client creates objects in a dry run, too: only that one can be tried that is refused.
				planned.Steps[i].dryRunDone = planned.Steps[i].Key.Name != "s" || tc.written
			}
			if err = planner.DryRun(t.Context(), planned); err == nil {
				err = executor.Execute(t.Context(), planned)
			}
			if got := err == nil; got != tc.want {
				t.Fatalf("the upgrade goes on: %t, want %t: %v", got, tc.want, err)
			}
			if !tc.want {
				return
			}
			if notes := planned.Refusals(); len(notes) != 1 || !strings.Contains(notes[0], `Service "s"`) {
				t.Errorf("notes = %q", notes)
			}
			if _, isNoted := executor.Progress.Left.Live[planned.Steps[2].Key]; isNoted {
				t.Error("the refused object counts as applied, so that no repair reads it")
			}
		})
	}
}

// TestPreviewsGoOn is F11: a preview agrees with the upgrade.
func TestPreviewsGoOn(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
	for name, version := range map[string]string{"F11: not touched": "1", "F11: changed": "2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
			refuse(client, "create", "configmaps", "a", apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil))
			planner := NewPlanner(client, installedMapper(), owner, nil)
			before := ownedBy(t, owner, installedObjects[:1])
			wanted := ownedBy(t, owner, []string{strings.Replace(installedObjects[0], `"1"`, `"`+version+`"`, 1)})
			planned, err := planner.Plan(wanted, before, nil)
			if err != nil {
				t.Fatal(err)
			}
			planned.Installed = func(context.Context) ([]*unstructured.Unstructured, error) { return before, nil }
			trials := planner.Foresee(t.Context(), planned)
			if len(trials) != 1 || (trials[0].Err != nil) != (version == "2") || (trials[0].Change == object.Unchanged) != (version == "1") {
				t.Errorf("trials = %+v", trials)
			}
		})
	}
}
