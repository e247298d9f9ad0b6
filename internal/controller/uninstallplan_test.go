package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

func TestPlanUninstall(t *testing.T) {
	t.Parallel()
	thing := installation.StoredObject{Key: object.Key{Namespace: "ns", Name: "a"}}
	thing.Key.Kind = "Thing"
	used := installation.Use{Definition: "things.test", Count: 2, Own: 1, First: []installation.StoredObject{thing}}
	own := installation.Use{Definition: "things.test", Count: 1, Own: 1}
	unknown := installation.Use{Definition: "others.test", Err: errors.New("you may not")}
	type want struct {
		policy  UninstallPolicy
		byFlag  bool
		keeps   string
		first   string
		steps   int
		refused string
	}
	for name, test := range map[string]struct {
		reason string
		config *ocv1.ClusterExtensionUninstallConfig
		uses   []installation.Use
		want   want

		servesAPIs bool
	}{
		"left out": {
			uses: []installation.Use{used}, want: want{policy: UninstallDelete, byFlag: true, first: "everything goes", steps: 1},
		},
		"delete": {
			config: &ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyDelete}, uses: []installation.Use{used},
			want: want{policy: UninstallDelete, first: "everything goes", steps: 1},
		},
		"with an API": {
			servesAPIs: true, want: want{policy: UninstallDelete, byFlag: true, first: "API services go", steps: 2},
		},
		"keep, with an API": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}, servesAPIs: true,
			want: want{policy: UninstallKeep, keeps: "definitions", first: "definitions are let go of", steps: 3},
		},
		"orphan, with an API": {
			config: &ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyOrphan}, servesAPIs: true,
			want: want{policy: UninstallOrphan, keeps: "all", first: "everything is let go of", steps: 1},
		},
		"in use": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse},
			uses:   []installation.Use{used, unknown},
			want: want{
				policy: UninstallRefuseWhileInUse, first: "nothing goes while", steps: 2,
				refused: `deletion is refused while there are custom resources: 1 of things.test: Thing "a" in namespace "ns"; delete them, or set another spec.uninstall`,
			},
		},
		"used by itself": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse},
			uses:   []installation.Use{own}, want: want{policy: UninstallRefuseWhileInUse, first: "nothing goes while", steps: 2},
		},
		"not counted": {
			reason: "the controller may count what the caller may not",
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse},
			uses:   []installation.Use{unknown}, want: want{policy: UninstallRefuseWhileInUse, first: "nothing goes while", steps: 2},
		},
		"first": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResources: ocv1.CustomResourcesUninstallPolicyDeleteFirst}, uses: []installation.Use{used, unknown},
			want: want{policy: UninstallDeleteFirst, first: "custom resources go", steps: 3},
		},
		"keep": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}, uses: []installation.Use{used},
			want: want{policy: UninstallKeep, keeps: "definitions", first: "definitions are let go of", steps: 2},
		},
		"orphan": {
			config: &ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyOrphan}, uses: []installation.Use{used},
			want: want{policy: UninstallOrphan, keeps: "all", first: "everything is let go of", steps: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &ocv1.ClusterExtension{}
			ext.Name, ext.UID = "x", "u"
			ext.Spec.Uninstall = test.config
			made := PlanUninstall(ext, UninstallContent{Uses: test.uses, ServesAPIs: test.servesAPIs})
			got := want{policy: made.Policy, byFlag: made.ByFlag, steps: len(made.Order), refused: made.Refused, first: test.want.first}
			switch {
			case made.KeepsAll:
				got.keeps = "all"
			case made.KeepsDefinitions:
				got.keeps = "definitions"
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if !strings.HasPrefix(made.Order[0], test.want.first) || made.Owner.Name != "x" || made.Owner.UID != "u" {
				t.Errorf("got %+v, want first %q", made, test.want.first)
			}
		})
	}
}

// TestFinalizersOfAPlannedDeletion is F25: a plan warns of custom resources with finalizers, if the operator is deleted at the
// same time, and names the policy that deletes them first.
func TestFinalizersOfAPlannedDeletion(t *testing.T) {
	t.Parallel()
	held := installation.Use{Definition: "things.test", Count: 7, HeldCount: 5, Held: []installation.StoredObject{
		{Key: object.Key{GroupKind: schema.GroupKind{Group: "test", Kind: "Thing"}, Namespace: "ns", Name: "a"}, Finalizers: []string{"things.test/f"}},
	}}
	own, shared := held, held
	own.Own, shared.Shared = own.Count, true
	const want = `custom resources with finalizers: 5: Thing "a" in namespace "ns" with finalizers [things.test/f]. ` +
		"The operator is deleted at the same time, and loses its permissions. If it removes these finalizers, they are kept for ever, and so are their CRDs. " +
		"To delete custom resources first, run `kubectl patch clusterextension x --type=merge --patch '{\"spec\":{\"uninstall\":{\"customResources\":\"DeleteFirst\"}}}'`"
	for name, tc := range map[string]struct {
		config ocv1.ClusterExtensionUninstallConfig
		use    installation.Use
		want   string
	}{
		"F25: no policy":           {use: held, want: want},
		"F25: no finalizers":       {use: installation.Use{Definition: "things.test", Count: 7}},
		"F25: of others as well":   {use: shared},
		"F25: delete first":        {config: ocv1.ClusterExtensionUninstallConfig{CustomResources: ocv1.CustomResourcesUninstallPolicyDeleteFirst}, use: held},
		"F25: keep":                {config: ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}, use: held},
		"F25: orphan":              {config: ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyOrphan}, use: held},
		"F25: refused":             {config: ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse}, use: held},
		"F25: only own are in use": {config: ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse}, use: own, want: want},
		"F25: delete, by the spec": {config: ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyDelete}, use: held, want: want},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &ocv1.ClusterExtension{}
			ext.Name, ext.Spec.Uninstall = "x", &tc.config
			if diff := cmp.Diff(tc.want, PlanUninstall(ext, UninstallContent{Uses: []installation.Use{tc.use}}).Warning); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	made := PlanUninstall(&ocv1.ClusterExtension{}, UninstallContent{Converts: true})
	if len(made.Order) != 2 || !strings.HasPrefix(made.Order[0], "CRDs with a conversion webhook are deleted") {
		t.Errorf("F22: the order is %q", made.Order)
	}
}

// TestRefusalWithoutConversion is F22: a policy that counts custom resources waits for the conversion webhook, and names it.
func TestRefusalWithoutConversion(t *testing.T) {
	t.Parallel()
	use := installation.Use{Definition: "things.apps.some-operator.test", Err: errors.New(`failed to read one or more things.apps.some-operator.test from the storage: StorageError: corrupt object, ` +
		`Code: 7, Key: /registry/apps.some-operator.test/things/some-namespace/one, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=663: conversion webhook for test/v1, Kind=Thing failed: Post "https://op.ns.svc:443/convert?timeout=30s": ` +
		`no endpoints available for service "op"` + strings.Repeat("x", maxText))}
	for _, policy := range []UninstallPolicy{UninstallRefuseWhileInUse, UninstallDeleteFirst} {
		got := refusedText(policy, []installation.Use{use})
		for _, want := range []string{"conversion webhook for test/v1, Kind=Thing failed", "repair the operator", "`kubectl get pods --all-namespaces` shows its pods", wayOut} {
			if !strings.Contains(got, want) || len(got) > maxText {
				t.Errorf("F22: with %s, %q is not in %q", policy, want, got)
			}
		}
	}
}

// TestAdviceOnDenials is F25: the denial of a webhook is no missing permission.
func TestAdviceOnDenials(t *testing.T) {
	t.Parallel()
	things := schema.GroupResource{Resource: "things"}
	for text, want := range map[string]string{
		`admission webhook "v.test" denied the request: it is protected`:                     "have the webhook or policy let the request pass",
		`ValidatingAdmissionPolicy 'p' with binding 'p' denied request: it is protected`:     "have the webhook or policy let the request pass",
		`User "system:serviceaccount:ns:installer" cannot delete resource "things"`:          "give the ServiceAccount that right",
		`exceeded quota: small, requested: count/things=1, used: count/things=5, limited: 5`: "the controller retries automatically: fix the cause",
	} {
		if got := adviceOn(apierrors.NewForbidden(things, "a", errors.New(text))); got != want {
			t.Errorf("F25: of %q the advice is %q, want %q", text, got, want)
		}
	}
	if got := adviceOn(errors.New("boom")); got != "the controller retries automatically: fix the cause" {
		t.Errorf("of another error the advice is %q", got)
	}
}

// TestHooksOfAPlannedDeletion: each where it runs, and one that has failed holds the deletion.
func TestHooksOfAPlannedDeletion(t *testing.T) {
	t.Parallel()
	var hooks []hook.Hook
	for name, event := range map[string]string{"leave": "pre-delete", "left": "post-delete", "migrate": "pre-upgrade"} {
		one, err := hook.Of(&unstructured.Unstructured{Object: map[string]any{
			"kind": "Job", "metadata": map[string]any{"name": name, "annotations": map[string]any{"helm.sh/hook": event}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		hooks = append(hooks, one)
	}
	failed := hook.Progress{Operation: hook.Delete}.Failed(time.Now(), "it has no room")
	const (
		before, after = `hooks run before all else that goes: Job "leave"`, `hooks run when that is gone: Job "left"`
		apis          = "API services go, so that nobody is asked who does not answer any more"
		all           = "everything goes at the same time: custom resources, the operator, and the rest"
		left          = "the hooks of the chart are left out, by spec.uninstall.hooks"
	)
	for name, tc := range map[string]struct {
		config ocv1.ClusterExtensionUninstallConfig
		want   []string
		failed bool
	}{
		"delete": {want: []string{before, apis, all, after}, failed: true},
		"skip":   {config: ocv1.ClusterExtensionUninstallConfig{Hooks: ocv1.HooksUninstallPolicySkip}, want: []string{left, apis, all}},
		"refuse": {
			config: ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse}, failed: true,
			want: []string{"nothing goes while there are custom resources that the extension has not installed itself", before, apis, all, after},
		},
		"keep": {
			config: ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}, failed: true,
			want: []string{before, "definitions are let go of, and stay with all custom resources but those of the extension itself", apis, "the rest goes at the same time", after},
		},
		"orphan": {config: ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyOrphan}, want: []string{"everything is let go of, and stays"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &ocv1.ClusterExtension{}
			ext.Spec.Uninstall = &tc.config
			made := PlanUninstall(ext, UninstallContent{ServesAPIs: true, Hooks: hooks, Progress: &failed})
			if diff := cmp.Diff(tc.want, made.Order); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			const wanted = `the pre-delete hook Job "leave" has failed: it has no room; ` + nextHook + "; to go on without, set spec.uninstall.hooks to Skip"
			if got := made.FailedHook; got != wanted && tc.failed || got != "" && !tc.failed {
				t.Errorf("of the hook that has failed it says %q", got)
			}
		})
	}
}
