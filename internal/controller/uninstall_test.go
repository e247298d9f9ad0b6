package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestUninstallPolicyOf(t *testing.T) {
	t.Parallel()
	type config = ocv1.ClusterExtensionUninstallConfig
	tests := map[string]struct {
		config    *config
		byDefault UninstallPolicy
		want      UninstallPolicy
	}{
		"none":                        {want: UninstallDelete},
		"none, with a default":        {byDefault: UninstallRefuseWhileInUse, want: UninstallRefuseWhileInUse},
		"Delete, in spite of it":      {config: &config{Policy: ocv1.UninstallPolicyDelete}, byDefault: UninstallOrphan, want: UninstallDelete},
		"Orphan":                      {config: &config{Policy: ocv1.UninstallPolicyOrphan}, want: UninstallOrphan},
		"Keep":                        {config: &config{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}, want: UninstallKeep},
		"RefuseWhileInUse":            {config: &config{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse}, want: UninstallRefuseWhileInUse},
		"definitions that go":         {config: &config{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyDelete}, byDefault: UninstallKeep, want: UninstallDelete},
		"custom resources that go":    {config: &config{CustomResources: ocv1.CustomResourcesUninstallPolicyDeleteFirst}, byDefault: UninstallKeep, want: UninstallDeleteFirst},
		"both, one after the other":   {config: &config{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyDelete, CustomResources: ocv1.CustomResourcesUninstallPolicyDeleteFirst}, want: UninstallDeleteFirst},
		"everything, and definitions": {config: &config{Policy: ocv1.UninstallPolicyDelete, CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}, want: UninstallKeep},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &ocv1.ClusterExtension{Spec: ocv1.ClusterExtensionSpec{Uninstall: tc.config}}
			if got := uninstallPolicyOf(ext, tc.byDefault); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestUninstallStep(t *testing.T) {
	t.Parallel()
	var (
		unused  = []installation.Use{{Definition: "a"}}
		used    = []installation.Use{{Definition: "a"}, {Definition: "b", Count: 1}}
		own     = []installation.Use{{Definition: "a", Count: 2, Own: 2}}
		unknown = []installation.Use{{Definition: "a", Err: errors.New("boom")}, {Definition: "b", Count: 1}}
		shared  = []installation.Use{{Definition: "a", Count: 1, Shared: true}, {Definition: "b", Shared: true, Err: errors.New("boom")}, {Definition: "c"}}
	)
	tests := map[string]struct {
		policy        UninstallPolicy
		uses          []installation.Use
		workloadsGone bool
		want          uninstallStep
	}{
		"refused while in use":                         {policy: UninstallRefuseWhileInUse, uses: used, want: stepRefuse},
		"refused while nobody knows":                   {policy: UninstallRefuseWhileInUse, uses: unknown, want: stepRefuse},
		"not refused for what belongs to it":           {policy: UninstallRefuseWhileInUse, uses: own, want: stepRelease},
		"not refused when unused":                      {policy: UninstallRefuseWhileInUse, uses: unused, want: stepRelease},
		"not refused without definitions":              {policy: UninstallRefuseWhileInUse, want: stepRelease},
		"custom resources first":                       {policy: UninstallDeleteFirst, uses: used, want: stepDeleteCustomResources},
		"those of the bundle too":                      {policy: UninstallDeleteFirst, uses: own, want: stepDeleteCustomResources},
		"also if what runs is gone":                    {policy: UninstallDeleteFirst, uses: used, workloadsGone: true, want: stepDeleteCustomResources},
		"nothing is deleted that nobody has looked at": {policy: UninstallDeleteFirst, uses: unknown, want: stepRefuse},
		"but for definitions that stay with others":    {policy: UninstallDeleteFirst, uses: shared, want: stepDeleteWorkloads},
		"refused although others may keep them":        {policy: UninstallRefuseWhileInUse, uses: shared, want: stepRefuse},
		"then what runs":                               {policy: UninstallDeleteFirst, uses: unused, want: stepDeleteWorkloads},
		"then the rest":                                {policy: UninstallDeleteFirst, uses: unused, workloadsGone: true, want: stepRelease},
		"everything at once":                           {policy: UninstallDelete, uses: used, want: stepRelease},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := uninstallStepOf(tc.policy, tc.uses, tc.workloadsGone); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func storedWidget(name string) installation.StoredObject {
	return installation.StoredObject{Key: object.Key{GroupKind: schema.GroupKind{Group: "p", Kind: "Widget"}, Namespace: "n", Name: name}}
}

// TestUninstall makes one pass over an extension that is being deleted, by each policy.
func TestUninstall(t *testing.T) {
	t.Parallel()
	var (
		used    = []installation.Use{{Definition: "widgets.p", Count: 2, First: []installation.StoredObject{storedWidget("a"), storedWidget("b")}}}
		unused  = []installation.Use{{Definition: "widgets.p"}}
		unknown = []installation.Use{{Definition: "widgets.p", Err: &installation.UncountedError{Resource: "widgets.p", Account: "ns/installer"}}}
		held    = storedWidget("a")
		anew    = storedWidget("a")
	)
	held.Finalizers, held.Deleted = []string{"f"}, true
	anew.Created = time.Unix(1000, 0)
	const (
		refused = "deletion is refused while there are custom resources: 2 of widgets.p: " +
			`Widget "a" in namespace "n", Widget "b" in namespace "n"; delete them, or set another spec.uninstall`
		uses = "uses, held: true"
		last = "uses, held: false"
	)
	tests := map[string]struct {
		policy    UninstallPolicy
		uses      [][]installation.Use
		usesErr   error
		keepErr   error
		goingErr  error
		letGoErr  error
		repairErr error
		running   [][]string
		age       time.Duration

		registered    [][]string
		registeredErr error

		foreground bool

		did   []string
		goes  bool
		ready string // with its message; empty for no status
		wait  time.Duration
	}{
		"refused": {
			policy: UninstallRefuseWhileInUse, uses: [][]installation.Use{used}, did: []string{uses, "repair"},
			ready: "False DeletionBlocked: " + refused, wait: uninstallRetry,
		},
		"refused, and nothing can be repaired": {
			policy: UninstallRefuseWhileInUse, uses: [][]installation.Use{used}, repairErr: errors.New("boom"), did: []string{uses, "repair"},
			ready: "False DeletionBlocked: " + refused + "; what is installed cannot be repaired: boom", wait: uninstallRetry,
		},
		"refused in vain": {
			policy: UninstallRefuseWhileInUse, uses: [][]installation.Use{used}, foreground: true, did: []string{uses, "repair"},
			ready: "False DeletionBlocked: deleted in the foreground, by which the cluster deletes all that it has installed, whatever its uninstall policy says; " + refused,
			wait:  uninstallRetry,
		},
		"not known": {
			policy: UninstallRefuseWhileInUse, uses: [][]installation.Use{unknown}, did: []string{uses, "repair"},
			ready: "False DeletionBlocked: deletion is refused because it is not known how many custom resources there are: " +
				`neither ServiceAccount "ns/installer" nor the controller may list widgets.p: give one of them that right, or set another spec.uninstall`,
			wait: uninstallRetry,
		},
		"not known which definitions": {
			policy: UninstallRefuseWhileInUse, usesErr: errors.New("boom"), did: []string{uses, "repair"},
			ready: "False DeletionBlocked: deletion is refused because it is not known which custom resources there are: boom", wait: uninstallRetry,
		},
		"not refused any more": {
			policy: UninstallRefuseWhileInUse, uses: [][]installation.Use{unused}, did: []string{uses, "begin deletion", "forget x", last}, goes: true,
		},
		"what the bundle has brought goes, and is not put back": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{{{Definition: "widgets.p", Count: 1, Own: 1, First: []installation.StoredObject{held}}}},
			did: []string{uses, "delete custom resources"},
			ready: "False Terminating: being deleted, which waits until custom resources are gone, whose finalizers the operator has to remove: " +
				`1 of widgets.p: Widget "a" in namespace "n" with finalizers [f]`,
			wait: uninstallInterval,
		},
		"not orphaned, as no record tells of it": {
			policy: UninstallOrphan, uses: [][]installation.Use{unused}, did: []string{"forget x", "orphan", uses},
			ready: "False DeletionBlocked: deletion is refused because definitions would go that are to stay: widgets.p: no record tells that they are installed, nor what else is; " +
				"delete it again with --cascade=orphan, or set another spec.uninstall",
			wait: uninstallRetry,
		},
		"not known whether all is orphaned": {
			policy: UninstallOrphan, usesErr: errors.New("boom"), did: []string{"forget x", "orphan", uses},
			ready: "False DeletionBlocked: deletion is refused because it is not known which custom resources there are: boom", wait: uninstallRetry,
		},
		"used at the last moment": {
			policy: UninstallRefuseWhileInUse, uses: [][]installation.Use{unused, used}, did: []string{uses, "begin deletion", "forget x", last},
			wait: atOnce,
		},
		"kept": {policy: UninstallKeep, did: []string{"keep definitions", "forget x"}, goes: true},
		"not kept": {
			policy: UninstallKeep, keepErr: &installation.ConversionError{Definition: "widgets.p", Stored: []string{"v1"}, Served: []string{"v1", "v2"}},
			did: []string{"keep definitions", "repair"},
			ready: `False DeletionBlocked: deletion is refused because definitions cannot be kept: CustomResourceDefinition "widgets.p" is converted by a webhook of the operator: ` +
				"versions v1 are stored, and v1, v2 are served; bring all stored objects to one version, which is the only one that is served and in status.storedVersions, or set another spec.uninstall",
			wait: uninstallRetry,
		},
		"custom resources go": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{used}, did: []string{uses, "delete custom resources", "repair"},
			ready: "False Terminating: being deleted, which waits until custom resources are gone, whose finalizers the operator has to remove: 2 of widgets.p: " +
				`Widget "a" in namespace "n", Widget "b" in namespace "n"`,
			wait: uninstallInterval,
		},
		"a custom resource does not go": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{{{Definition: "widgets.p", Count: 1, First: []installation.StoredObject{held}}}},
			age: uninstallPatience, did: []string{uses, "delete custom resources", "repair"},
			ready: "False DeletionBlocked: being deleted, which waits until custom resources are gone, whose finalizers the operator has to remove: " +
				`1 of widgets.p: Widget "a" in namespace "n" with finalizers [f]; see why they stay, or set another spec.uninstall`,
			wait: uninstallRetry / 2,
		},
		"a custom resource is made anew": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{{{Definition: "widgets.p", Count: 1, First: []installation.StoredObject{anew}}}},
			age: uninstallPatience, did: []string{uses, "delete custom resources", "repair"},
			ready: "False DeletionBlocked: being deleted, which waits until custom resources are gone, whose finalizers the operator has to remove: " +
				`1 of widgets.p: Widget "a" in namespace "n"; some were made since: stop what makes them or, if that is the operator, set spec.uninstall to policy Delete; ` +
				"see why they stay, or set another spec.uninstall",
			wait: uninstallRetry / 2,
		},
		"custom resources may not be deleted": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{used}, goingErr: errors.New("boom"), did: []string{uses, "delete custom resources", "repair"},
			ready: "False DeletionBlocked: being deleted, which waits until custom resources are deleted: boom; the controller retries automatically: fix the cause, or set another spec.uninstall",
			wait:  uninstallRetry,
		},
		"custom resources are not to go any more": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{used}, goingErr: object.ErrOwnerGone, did: []string{uses, "delete custom resources"},
			ready: "False Terminating: being deleted, which waits until custom resources are gone, whose finalizers the operator has to remove: 2 of widgets.p: " +
				`Widget "a" in namespace "n", Widget "b" in namespace "n"`,
			wait: removalRecheck,
		},
		"custom resources do not go in the foreground": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{used}, goingErr: object.ErrOwnerGone, foreground: true, age: uninstallPatience,
			did: []string{uses, "delete custom resources"},
			ready: "False DeletionBlocked: deleted in the foreground, by which the cluster deletes all that it has installed, whatever its uninstall policy says; " +
				"being deleted, which waits until custom resources are gone, whose finalizers the operator has to remove: 2 of widgets.p: " +
				`Widget "a" in namespace "n", Widget "b" in namespace "n"; see why they stay, or set another spec.uninstall`,
			wait: uninstallRetry / 2,
		},
		"what runs goes": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{unused}, running: [][]string{{`Deployment "d"`}}, did: []string{uses, "delete workloads"},
			ready: `False Terminating: being deleted, which waits until the operator is gone: Deployment "d"`, wait: uninstallInterval,
		},
		"what runs is gone": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{unused}, did: []string{uses, "delete workloads", uses, "begin deletion", "forget x"}, goes: true,
		},
		"custom resources are made while what runs goes": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{unused, used}, did: []string{uses, "delete workloads", uses},
			ready: "False Terminating: being deleted, which begins again with custom resources: some were made meanwhile", wait: uninstallInterval,
		},
		"not known whether custom resources are made while what runs goes": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{unused, unknown}, did: []string{uses, "delete workloads", uses},
			ready: "False DeletionBlocked: deletion is refused because it is not known how many custom resources there are: " +
				`neither ServiceAccount "ns/installer" nor the controller may list widgets.p: give one of them that right, or set another spec.uninstall`,
			wait: uninstallRetry,
		},
		"API services go first": {
			policy: UninstallDelete, registered: [][]string{{`APIService "v1.p"`}}, did: []string{"unregister"},
			ready: `False Terminating: being deleted, which waits for 1m0s at most until its API services and converted CRDs are gone: APIService "v1.p"`, wait: uninstallInterval,
		},
		"API services are gone": {
			policy: UninstallDelete, registered: [][]string{nil}, did: []string{"unregister", "begin deletion", "forget x"}, goes: true,
		},
		"API services go after definitions are kept": {
			policy: UninstallKeep, registered: [][]string{{`APIService "v1.p"`}}, did: []string{"keep definitions", "unregister"},
			ready: `False Terminating: being deleted, which waits for 1m0s at most until its API services and converted CRDs are gone: APIService "v1.p"`, wait: uninstallInterval,
		},
		"API services go before what runs": {
			policy: UninstallDeleteFirst, uses: [][]installation.Use{unused}, registered: [][]string{{`APIService "v1.p"`}}, did: []string{uses, "unregister"},
			ready: `False Terminating: being deleted, which waits for 1m0s at most until its API services and converted CRDs are gone: APIService "v1.p"`, wait: uninstallInterval,
		},
		"API services stay while it is in use": {
			policy: UninstallRefuseWhileInUse, uses: [][]installation.Use{used}, registered: [][]string{{`APIService "v1.p"`}}, did: []string{uses, "repair"},
			ready: "False DeletionBlocked: " + refused, wait: uninstallRetry,
		},
		"API services cannot be deleted": {
			policy: UninstallDelete, registeredErr: errors.New("boom"), did: []string{"unregister"},
			ready: "False Terminating: being deleted, which waits for 1m0s at most until its API services and converted CRDs are gone: boom",
			wait:  uninstallInterval,
		},
		"API services are to stay by now": {
			policy: UninstallDelete, registeredErr: object.ErrOwnerGone, did: []string{"unregister"},
			ready: "False Terminating: being deleted, which waits until its API services and converted CRDs are gone", wait: removalRecheck,
		},
		"orphaned": {policy: UninstallOrphan, did: []string{"forget x", "orphan", uses, "forget x"}, goes: true},
		"not orphaned, for long": {
			policy: UninstallOrphan, letGoErr: errors.New("boom"), age: time.Hour, did: []string{"forget x", "orphan"},
			ready: "False DeletionBlocked: being deleted, which waits until all that it has installed, which stays, belongs to it no longer: boom", wait: uninstallRetry,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.Finalizers = append(slices.Clone(finalizers), ocv1.UninstallPolicyFinalizer)
			if tc.foreground {
				ext.Finalizers = append(ext.Finalizers, metav1.FinalizerDeleteDependents)
			}
			ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0).Add(-tc.age)}
			w := newWorld(t, ext)
			w.reconciler.UninstallPolicy = tc.policy
			w.installation.Installed = &installation.Revision{}
			w.uses, w.usesErr, w.keepErr, w.goingErr, w.running = tc.uses, tc.usesErr, tc.keepErr, tc.goingErr, tc.running
			w.letGoErr, w.repairErr = tc.letGoErr, tc.repairErr
			w.registered, w.registeredErr = tc.registered, tc.registeredErr
			result, err := w.reconcile(t)
			if err != nil || result.RequeueAfter != tc.wait {
				t.Errorf("looked at again after %s (%v), want %s", result.RequeueAfter, err, tc.wait)
			}
			if diff := cmp.Diff(tc.did, w.did); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			got := &ocv1.ClusterExtension{}
			err = w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, got)
			if tc.goes {
				if !apierrors.IsNotFound(err) {
					t.Errorf("it is still there: %v", err)
				}
				return
			}
			if err != nil || !slices.Equal(got.Finalizers, ext.Finalizers) {
				t.Fatalf("finalizers are %q (%v), want %q", got.Finalizers, err, ext.Finalizers)
			}
			if diff := cmp.Diff(tc.ready, brief(&got.Status, ocv1.TypeReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			ready := meta.FindStatusCondition(got.Status.Conditions, ocv1.TypeReady)
			if ready == nil {
				return
			}
			blocked := ready.Reason == ocv1.ReasonDeletionBlocked
			if is := meta.IsStatusConditionTrue(got.Status.Conditions, ocv1.TypeStalled); is != blocked {
				t.Errorf("Stalled is %t with the reason %s", is, ready.Reason)
			}
			if is := meta.IsStatusConditionTrue(got.Status.Conditions, ocv1.TypeReconciling); is == blocked {
				t.Errorf("Reconciling is %t with the reason %s", is, ready.Reason)
			}
		})
	}
}

// TestAPIServicesHaveTheirTime has a deletion that began long ago, and API services that stay: these
// have a minute from when it was their turn.
func TestAPIServicesHaveTheirTime(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Finalizers, ext.DeletionTimestamp = slices.Clone(finalizers), &metav1.Time{Time: time.Unix(1000, 0).Add(-time.Hour)}
	w := newWorld(t, ext)
	w.reconciler.UninstallPolicy, w.registeredErr = UninstallDelete, errors.New("boom")
	w.installation.Installed = &installation.Revision{}
	for _, passed := range []time.Duration{0, uninstallPatience - 1, uninstallPatience} {
		w.passed = passed
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, &ocv1.ClusterExtension{})
		if gone := apierrors.IsNotFound(err); gone != (passed == uninstallPatience) {
			t.Errorf("after %s gone is %t", passed, gone)
		}
	}
}

// TestOrphaningIsNotGivenUp has a policy that protects content, and a ServiceAccount that may
// not let go of it: the extension stays, whoever has asked to orphan its content.
func TestOrphaningIsNotGivenUp(t *testing.T) {
	t.Parallel()
	for _, policy := range DefaultUninstallPolicies() {
		ext := sampleExtension()
		ext.Finalizers, ext.DeletionTimestamp = slices.Clone(finalizers), &metav1.Time{Time: time.Unix(1000, 0)}
		ext.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeReady, Status: metav1.ConditionFalse, Reason: ocv1.ReasonOrphaning}}
		w := newWorld(t, ext)
		w.reconciler.UninstallPolicy, w.letGoErr = policy, errors.New("boom")
		for pass := range 2 {
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			held := &ocv1.ClusterExtension{}
			if err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, held); err == nil {
				stuck := pass == 1 // somebody has to act
				conditions := held.Status.Conditions
				if is := meta.IsStatusConditionTrue(conditions, ocv1.TypeStalled); is != stuck {
					t.Errorf("%s: after %s Stalled is %t", policy, w.passed, is)
				}
				if is := meta.IsStatusConditionTrue(conditions, ocv1.TypeReconciling); is == stuck {
					t.Errorf("%s: after %s Reconciling is %t", policy, w.passed, is)
				}
			}
			w.passed += time.Hour
		}
		err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, &ocv1.ClusterExtension{})
		if gone := apierrors.IsNotFound(err); gone != (policy == UninstallDelete) {
			t.Errorf("%s: gone is %t", policy, gone)
		}
	}
}

// TestRefusalIsQuiet makes 250 passes over an extension that is not to go: the status is
// written once.
func TestRefusalIsQuiet(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Finalizers, ext.DeletionTimestamp = slices.Clone(finalizers), &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	w.reconciler.UninstallPolicy = UninstallRefuseWhileInUse
	w.uses = [][]installation.Use{{{Definition: "widgets.p", Count: 1, First: []installation.StoredObject{storedWidget("a")}}}}
	for range 250 {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.writes) != 1 || len(w.events) != 1 {
		t.Errorf("wrote %q and told %q", w.writes, w.events)
	}
}

// TestFailedRepairsOfHeldExtensionsAreSeldom: nothing else slows them down.
func TestFailedRepairsOfHeldExtensionsAreSeldom(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Finalizers, ext.DeletionTimestamp = slices.Clone(finalizers), &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	w.reconciler.UninstallPolicy, w.repairErr = UninstallRefuseWhileInUse, errors.New("boom")
	w.installation.Installed = &installation.Revision{}
	w.uses = [][]installation.Use{{{Definition: "widgets.p", Count: 1, First: []installation.StoredObject{storedWidget("a")}}}}
	for range 10 {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		w.passed += uninstallRetry / 5
	}
	repairs := slices.DeleteFunc(slices.Clone(w.did), func(did string) bool { return did != "repair" })
	if len(repairs) != 2 {
		t.Errorf("%d repairs in %s, want 2", len(repairs), w.passed)
	}
}

// TestFinalizersFollowThePolicy: an extension without one has those of the reference
// implementation.
func TestFinalizersFollowThePolicy(t *testing.T) {
	t.Parallel()
	const theirs = "example.com/theirs"
	ours := append(slices.Clone(finalizers), ocv1.UninstallPolicyFinalizer)
	tests := map[string]struct {
		policy    UninstallPolicy
		has, want []string
	}{
		"new, without one":     {policy: UninstallDelete, has: []string{theirs}, want: append([]string{theirs}, finalizers...)},
		"without one":          {policy: UninstallDelete, has: finalizers},
		"new":                  {policy: UninstallKeep, want: ours},
		"one that is added":    {policy: UninstallOrphan, has: finalizers, want: ours},
		"one that is there":    {policy: UninstallRefuseWhileInUse, has: ours},
		"one that was dropped": {policy: UninstallDelete, has: append(slices.Clone(ours), theirs), want: append(slices.Clone(finalizers), theirs)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &ocv1.ClusterExtension{}
			ext.Finalizers = tc.has
			if diff := cmp.Diff(tc.want, wantedFinalizers(ext, tc.policy)); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusalNamesTheFirst has more custom resources, and definitions, than a message has
// room for.
func TestRefusalNamesTheFirst(t *testing.T) {
	t.Parallel()
	var uses []installation.Use
	for i := range 50 {
		use := installation.Use{Definition: fmt.Sprintf("widgets%02d.p", i), Count: 1001, Own: 1}
		for j := range installation.MaxFirst {
			use.First = append(use.First, storedWidget(fmt.Sprintf("w-%02d-%02d", i, j)))
		}
		uses = append(uses, use)
	}
	text := refusedText(UninstallRefuseWhileInUse, uses)
	if got := strings.Count(text, "Widget "); got != installation.MaxFirst || !strings.Contains(text, "1000 of widgets00.p, ") {
		t.Errorf("%d are named: %s", got, text)
	}
}

// TestRefusalLastsAsLongAsTheExtension has somebody else hold the extension, for as long as they
// like: what is made meanwhile would go with it, if nobody looked any more.
func TestRefusalLastsAsLongAsTheExtension(t *testing.T) {
	t.Parallel()
	const theirs = "example.com/theirs"
	ext := sampleExtension()
	ext.Finalizers = append(slices.Clone(finalizers), ocv1.UninstallPolicyFinalizer, theirs)
	ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	w.reconciler.UninstallPolicy = UninstallRefuseWhileInUse
	w.installation.Installed = &installation.Revision{}
	w.uses = [][]installation.Use{{{Definition: "widgets.p"}}}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	held := w.extension(t)
	if diff := cmp.Diff(ext.Finalizers, held.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"uses, held: true", "repair"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if got := brief(&held.Status, ocv1.TypeReady); !strings.Contains(got, theirs) {
		t.Errorf("Ready is %s", got)
	}
	held.Finalizers = slices.DeleteFunc(held.Finalizers, func(name string) bool { return name == theirs })
	if err := w.client.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	w.uses = [][]installation.Use{{{Definition: "widgets.p", Count: 1, First: []installation.StoredObject{storedWidget("a")}}}}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if got := brief(&w.extension(t).Status, ocv1.TypeReady); !strings.Contains(got, "DeletionBlocked") {
		t.Errorf("Ready is %s although there is a custom resource by now", got)
	}
}

// TestPolicyThatIsSetLate has an extension that was let go of, and that somebody else still holds
// when it gets an uninstall policy.
func TestPolicyThatIsSetLate(t *testing.T) {
	t.Parallel()
	const waits = "False Terminating: being deleted, which waits until its finalizers example.com/theirs are removed by whoever has set them"
	for policy, want := range map[UninstallPolicy]struct {
		did   []string
		ready string
	}{
		UninstallDelete:           {ready: waits},
		UninstallKeep:             {did: []string{"keep definitions"}, ready: waits},
		UninstallOrphan:           {did: []string{"forget x", "orphan", "uses, held: true"}, ready: waits},
		UninstallRefuseWhileInUse: {ready: waits + tooLateText},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.Finalizers, ext.DeletionTimestamp = []string{"example.com/theirs"}, &metav1.Time{Time: time.Unix(1000, 0)}
			w := newWorld(t, ext)
			w.reconciler.UninstallPolicy = policy
			result, err := w.reconcile(t)
			if err != nil || result.RequeueAfter != 0 {
				t.Errorf("looked at again after %s (%v)", result.RequeueAfter, err)
			}
			if diff := cmp.Diff(want.did, w.did); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.ready, brief(&w.extension(t).Status, ocv1.TypeReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPolicyThatIsSetLateAndFails is tried again as long as there is time for it.
func TestPolicyThatIsSetLateAndFails(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Finalizers, ext.DeletionTimestamp = []string{"example.com/theirs"}, &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	w.reconciler.UninstallPolicy, w.keepErr = UninstallKeep, errors.New("boom")
	result, err := w.reconcile(t)
	if err != nil || result.RequeueAfter != uninstallRetry {
		t.Errorf("looked at again after %s (%v)", result.RequeueAfter, err)
	}
	if got := brief(&w.extension(t).Status, ocv1.TypeReady); !strings.Contains(got, "definitions cannot be kept: boom") {
		t.Errorf("Ready is %s", got)
	}
}

// slowUses is a cluster that takes as long as it may to say what is used.
type slowUses struct {
	Uninstalls

	until time.Duration
}

func (s *slowUses) Uses(ctx context.Context, _ object.Owner) (installation.Uses, error) {
	if until, bounded := ctx.Deadline(); bounded {
		s.until = time.Until(until)
	}
	return installation.Uses{}, context.DeadlineExceeded
}

// TestUninstallIsBounded: webhooks of one bundle do not keep a worker for a whole pass.
func TestUninstallIsBounded(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Finalizers, ext.DeletionTimestamp = slices.Clone(finalizers), &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	slow := &slowUses{Uninstalls: w}
	w.reconciler.Uninstalls, w.reconciler.UninstallPolicy = slow, UninstallRefuseWhileInUse
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if slow.until <= 0 || slow.until > uninstallTimeout {
		t.Errorf("it may take %s", slow.until)
	}
}

// slowOrphaning is a cluster that takes as long as it may to let go of content.
type slowOrphaning struct {
	Deletions

	until time.Duration
}

func (s *slowOrphaning) Orphan(ctx context.Context, _ object.Owner) error {
	if until, bounded := ctx.Deadline(); bounded {
		s.until = time.Until(until)
	}
	return context.DeadlineExceeded
}

// TestOrphaningIsBounded: as for what else a policy does.
func TestOrphaningIsBounded(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.Finalizers, ext.DeletionTimestamp = slices.Clone(finalizers), &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	slow := &slowOrphaning{Deletions: w}
	w.reconciler.Deletions, w.reconciler.UninstallPolicy = slow, UninstallOrphan
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if slow.until <= 0 || slow.until > uninstallTimeout {
		t.Errorf("it may take %s", slow.until)
	}
}

// TestFailedUninstallText: advice about rights is for whoever lacks rights.
func TestFailedUninstallText(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "w", errors.New(`User "u" cannot delete resource "widgets"`))
	for name, tc := range map[string]struct {
		err      error
		isRights bool
	}{
		"a right":            {err: fmt.Errorf("custom resources of widgets.p: %w", forbidden), isRights: true},
		"a right, among all": {err: errors.Join(forbidden, errors.New("boom")), isRights: true},
		"something else":     {err: apierrors.NewServiceUnavailable("busy")},
		"a long error":       {err: errors.New(strings.Repeat("x", 2*maxText))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failedUninstallText("custom resources are deleted", tc.err)
			if is := strings.Contains(got, "right"); is != tc.isRights {
				t.Errorf("told: %s", got)
			}
			if !strings.HasSuffix(got, wayOut) || len(got) > maxText {
				t.Errorf("%d bytes that end with %q", len(got), got[max(0, len(got)-40):])
			}
		})
	}
}
