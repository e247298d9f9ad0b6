package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// The tests by the name of a vector, O1 to O10, are about operators that say whether they are
// to be upgraded. What an operator would write is written by the test, as its ServiceAccount.

const busy = "migration"

var theDefinition sync.Once

// bringOperatorConditions makes the kind, once for all tests.
func bringOperatorConditions(t *testing.T) {
	t.Helper()
	theDefinition.Do(func() {
		if err := theSuite.Kubectl(t.Context(), "apply", "-k", theSuite.Root()+"/config/operatorconditions"); err != nil {
			t.Fatal(err)
		}
		if err := theSuite.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd/operatorconditions.operators.coreos.com"); err != nil {
			t.Fatal(err)
		}
	})
}

// inline is a configuration.
func inline(json string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Config = &ocv1.ClusterExtensionConfig{
			ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: []byte(json)},
		}
	}
}

// extendWithCondition installs version 1.0.0 of an operator that has 1.1.0 as its successor.
func extendWithCondition(t *testing.T, name string) {
	t.Helper()
	bringOperatorConditions(t)
	publish(t, operators(name, "1.0.0", "1.1.0")...)
	extend(t, name, version("1.0.0"), inline(`{"operatorConditions": true}`))
	installed(t, name, "1.0.0")
}

// operatorCondition is that of a bundle.
func operatorCondition(t *testing.T, name, version string) *unstructured.Unstructured {
	t.Helper()
	found := newOperatorCondition()
	exists(t, found, name, testkit.Operator{Package: name, Version: version}.Name())
	return found
}

func newOperatorCondition() *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("operators.coreos.com/v2")
	found.SetKind("OperatorCondition")
	return found
}

// claim has the operator of version 1.0.0 say something, with no right but those that it was
// given.
func claim(t *testing.T, name, status, message string) {
	t.Helper()
	config, err := theSuite.Cluster.ConfigFor("system:serviceaccount:"+name+":"+name, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := client.New(config, client.Options{Scheme: theSuite.Admin.Scheme(), Mapper: theSuite.Admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"spec": {"conditions": [{"type": "Upgradeable", "status": %q, "reason": "Work", "message": %q, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`, status, message)
	eventually(t, "the claim of "+name, func(ctx context.Context) error {
		return operator.Patch(ctx, operatorCondition(t, name, "1.0.0"), client.RawPatch(patchType, []byte(patch)))
	})
}

const patchType = "application/merge-patch+json"

// override has an administrator say something; nothing, if the status is empty.
func override(t *testing.T, name, status string) {
	t.Helper()
	overrides := "[]"
	if status != "" {
		overrides = fmt.Sprintf(`[{"type": "Upgradeable", "status": %q, "message": "by the administrator"}]`, status)
	}
	patch := client.RawPatch(patchType, []byte(`{"spec": {"overrides": `+overrides+`}}`))
	if err := theSuite.Admin.Patch(t.Context(), operatorCondition(t, name, "1.0.0"), patch); err != nil {
		t.Fatal(err)
	}
}

// held waits until an upgrade waits for the operator, and nothing is amiss.
func held(t *testing.T, name, says string) {
	t.Helper()
	matchCondition(t, name, ocv1.TypeReady, func(got string) bool {
		return strings.HasPrefix(got, "True UpgradeHeld: ") && strings.Contains(got, says)
	}, "True UpgradeHeld: …"+says+"…")
	condition(t, name, ocv1.TypeProgressing, "True Succeeded: Desired state reached")
	condition(t, name, ocv1.TypeInstalled, "True Succeeded: Installed bundle "+registryHost+"/"+name+":v1.0.0 successfully")
}

// conditionNameOf is what the containers of the operator are told.
func conditionNameOf(t *testing.T, name string) string {
	t.Helper()
	deployment := &appsv1.Deployment{}
	exists(t, deployment, name, name)
	for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "OPERATOR_CONDITION_NAME" {
			return variable.Value
		}
	}
	return ""
}

// requestsAbout are those of the controller to OperatorConditions in a namespace.
func requestsAbout(t *testing.T, namespace string, since time.Time) []environment.Request {
	t.Helper()
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(requests), func(request environment.Request) bool {
		return request.ObjectRef == nil || request.ObjectRef.Resource != "operatorconditions" || request.ObjectRef.Namespace != namespace ||
			!request.StageTimestamp.After(since) || request.Verb == "watch"
	})
}

// TestO1NothingIsSaid: an operator that has not said anything is upgraded, and its successor
// has an object of its own.
func TestO1NothingIsSaid(t *testing.T) {
	t.Parallel()
	const name = "o1-silent"
	extendWithCondition(t, name)
	if got := conditionNameOf(t, name); got != "o1-silent.v1.0.0" {
		t.Errorf("the operator is told %q", got)
	}
	want := map[string]any{"serviceAccounts": []any{name}, "deployments": []any{name}}
	if diff := cmp.Diff(want, operatorCondition(t, name, "1.0.0").Object["spec"]); diff != "" {
		t.Errorf("the object (-want +got):\n%s", diff)
	}
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
	operatorCondition(t, name, "1.1.0")
	gone(t, newOperatorCondition(), name, "o1-silent.v1.0.0")
	if got := conditionNameOf(t, name); got != "o1-silent.v1.1.0" {
		t.Errorf("the successor is told %q", got)
	}
}

// TestO2AnObjectionHolds: what is installed is kept, repaired and configured meanwhile, and
// passes over it cost nothing.
func TestO2AnObjectionHolds(t *testing.T) {
	t.Parallel()
	const name = "o2-objecting"
	extendWithCondition(t, name)
	claim(t, name, "False", busy)
	update(t, name, version("1.1.0"))
	held(t, name, "Upgradeable=False (Work): "+busy)

	settings := &corev1.ConfigMap{}
	exists(t, settings, name, "settings")
	remove(t, settings)
	exists(t, &corev1.ConfigMap{}, name, "settings")
	held(t, name, busy)

	read := len(requestsAbout(t, name, time.Time{}))
	for i := range 3 {
		catalog := &ocv1.ClusterCatalog{}
		exists(t, catalog, "", name)
		before := client.MergeFrom(catalog.DeepCopy())
		catalog.Labels["pass"] = fmt.Sprint(i)
		if err := theSuite.Admin.Patch(t.Context(), catalog, before); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	if again := len(requestsAbout(t, name, time.Time{})); again > read {
		t.Errorf("the object was read %d times more although nobody had changed it", again-read)
	}

	update(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	update(t, name, inline(`{"operatorConditions": true, "deploymentConfig": {"env": [{"name": "ADDED", "value": "now"}]}}`))
	eventually(t, "another configuration of the same version", func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: name, Name: name}, deployment)
		if err == nil && !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Env, func(v corev1.EnvVar) bool { return v.Name == "ADDED" }) {
			err = errors.New("the operator does not have the variable")
		}
		return err
	})
	update(t, name, version("1.1.0"))
	held(t, name, busy)
}

// TestO3AnOverrideAllows although the operator objects.
func TestO3AnOverrideAllows(t *testing.T) {
	t.Parallel()
	const name = "o3-overridden"
	extendWithCondition(t, name)
	claim(t, name, "False", busy)
	update(t, name, version("1.1.0"))
	held(t, name, busy)
	override(t, name, "True")
	installed(t, name, "1.1.0")
}

// TestO4AnOverrideForbids although the operator does not object.
func TestO4AnOverrideForbids(t *testing.T) {
	t.Parallel()
	const name = "o4-forbidden"
	extendWithCondition(t, name)
	claim(t, name, "True", "ready")
	override(t, name, "False")
	update(t, name, version("1.1.0"))
	held(t, name, "an override says Upgradeable=False: by the administrator")
	override(t, name, "")
	installed(t, name, "1.1.0")
}

// TestO5ItGoesOnByItself as soon as the operator agrees: what is looked at again in time comes
// a minute later at the earliest.
func TestO5ItGoesOnByItself(t *testing.T) {
	t.Parallel()
	const name, atOnce = "o5-flipping", 30 * time.Second
	extendWithCondition(t, name)
	claim(t, name, "False", busy)
	update(t, name, version("1.1.0"))
	held(t, name, busy)
	claim(t, name, "True", "done")
	agreed := time.Now()
	operatorCondition(t, name, "1.1.0")
	if took := time.Since(agreed); took > atOnce {
		t.Errorf("it went on %s after the operator had agreed", took)
	} else {
		t.Logf("it went on %s after the operator had agreed", took)
	}
	installed(t, name, "1.1.0")
}

// TestO6TheCopyIsNotAsked: what classic OLM has copied to the status may be old.
func TestO6TheCopyIsNotAsked(t *testing.T) {
	t.Parallel()
	const name = "o6-copied"
	extendWithCondition(t, name)
	found := operatorCondition(t, name, "1.0.0")
	found.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Upgradeable", "status": "False", "reason": "Work", "message": busy, "observedGeneration": int64(1), "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
	if err := theSuite.Admin.Status().Update(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	claim(t, name, "True", "ready")
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
}

// TestO7WithoutTheMeansNobodyIsAsked: the installed revision has no such object, and its
// successor has one.
func TestO7WithoutTheMeansNobodyIsAsked(t *testing.T) {
	t.Parallel()
	const name = "o7-older"
	bringOperatorConditions(t)
	publish(t, operators(name, "1.0.0", "1.1.0")...)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	if requests := requestsAbout(t, name, time.Time{}); len(requests) > 0 {
		t.Errorf("%v was asked for an extension without such an object", requests[0])
	}
	update(t, name, func(extension *ocv1.ClusterExtension) {
		version("1.1.0")(extension)
		inline(`{"operatorConditions": true}`)(extension)
	})
	installed(t, name, "1.1.0")
	operatorCondition(t, name, "1.1.0")
	for _, request := range requestsAbout(t, name, time.Time{}) {
		if request.ObjectRef.Name == "o7-older.v1.0.0" {
			t.Errorf("%s was asked", request)
		}
	}
}

// TestO8NobodyFightsWithClassicOLM, which is not here: what it does about any such object is
// done again and again, the Role and the binding under its name that belong to it, and the
// copy of what the operator says.
func TestO8NobodyFightsWithClassicOLM(t *testing.T) {
	t.Parallel()
	const name, rounds = "o8-beside", 8
	extendWithCondition(t, name)
	claim(t, name, "False", busy)
	update(t, name, version("1.1.0"))
	held(t, name, busy)
	classicRound(t, name)
	held(t, name, busy)
	time.Sleep(2 * time.Second) // events of the first round
	since := time.Now()
	for range rounds {
		if writes := classicRound(t, name); writes > 0 {
			t.Errorf("there was something for classic OLM to write: %d requests", writes)
		}
		time.Sleep(250 * time.Millisecond)
	}
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if request.ObjectRef != nil && request.ObjectRef.Namespace == name && request.StageTimestamp.After(since) && request.IsWrite() {
			t.Errorf("the controller has written: %s", request)
		}
	}
	exists(t, &rbacv1.Role{}, name, "o8-beside.v1.0.0-operatorcondition")
	claim(t, name, "True", "done")
	installed(t, name, "1.1.0")
}

// classicRound does what classic OLM does when it looks at the OperatorCondition of version
// 1.0.0, and says how much there was to write.
func classicRound(t *testing.T, name string) (writes int) {
	t.Helper()
	found := operatorCondition(t, name, "1.0.0")
	owner := metav1.OwnerReference{
		APIVersion: found.GetAPIVersion(), Kind: found.GetKind(), Name: found.GetName(), UID: found.GetUID(), Controller: new(true), BlockOwnerDeletion: new(false),
	}
	metadata := metav1.ObjectMeta{Namespace: name, Name: found.GetName(), OwnerReferences: []metav1.OwnerReference{owner}}
	rules := []rbacv1.PolicyRule{{
		Verbs: []string{"get", "update", "patch"}, APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"}, ResourceNames: []string{found.GetName()},
	}}
	role := &rbacv1.Role{ObjectMeta: metadata, Rules: rules}
	switch err := theSuite.Admin.Create(t.Context(), role.DeepCopy()); {
	case err == nil:
		writes++
	case !apierrors.IsAlreadyExists(err):
		t.Fatal(err)
	default:
		existing := &rbacv1.Role{}
		exists(t, existing, name, role.Name)
		if !metav1.IsControlledBy(existing, found) || cmp.Diff(rules, existing.Rules) != "" {
			existing.OwnerReferences, existing.Rules = role.OwnerReferences, rules
			if err := theSuite.Admin.Update(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			writes++
		}
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metadata, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}
	switch err := theSuite.Admin.Create(t.Context(), binding.DeepCopy()); {
	case err == nil:
		writes++
	case !apierrors.IsAlreadyExists(err):
		t.Fatal(err)
	default:
		existing := &rbacv1.RoleBinding{}
		exists(t, existing, name, role.Name)
		if !metav1.IsControlledBy(existing, found) || cmp.Diff(binding.Subjects, existing.Subjects) != "" {
			existing.OwnerReferences, existing.Subjects = binding.OwnerReferences, binding.Subjects
			if err := theSuite.Admin.Update(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			writes++
		}
	}
	said, _, err := unstructured.NestedSlice(found.Object, "spec", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range said {
		if item, ok := item.(map[string]any); ok {
			item["observedGeneration"] = found.GetGeneration()
		}
	}
	copied, _, err := unstructured.NestedSlice(found.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Diff(said, copied) != "" {
		found.Object["status"] = map[string]any{"conditions": said}
		if err := theSuite.Admin.Status().Update(t.Context(), found); err != nil {
			t.Fatal(err)
		}
		writes++
	}
	return writes
}

// TestO9ImpossibleNames: the operator has its variable, and no object is made. That the check
// of bundles says so is a test of internal/bundlecheck.
func TestO9ImpossibleNames(t *testing.T) {
	t.Parallel()
	const name = "o9-shouting"
	bringOperatorConditions(t)
	operator := operators(name, "1.0.0")[0]
	files := operator.Bundle()
	text := string(files["manifests/csv.yaml"].Data)
	files["manifests/csv.yaml"].Data = []byte(strings.Replace(text, "name: o9-shouting.v1.0.0", "name: O9-SHOUTING.v1.0.0", 1))
	pushBundle(t, operator, files)
	publishCatalog(t, name, testkit.Catalog(registryHost, operator))
	extend(t, name, inline(`{"operatorConditions": true}`))
	installed(t, name, "1.0.0")
	if got := conditionNameOf(t, name); got != "" {
		t.Errorf("the operator is told %q, and there is no such object", got)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("operators.coreos.com/v2")
	list.SetKind("OperatorConditionList")
	if err := theSuite.Admin.List(t.Context(), list, client.InNamespace(name)); err != nil || len(list.Items) > 0 {
		t.Errorf("there are %d objects, error %v", len(list.Items), err)
	}
}

// TestO10OnlyWhatIsOursIsRepaired: the Role comes back, and so do the fields that the bundle
// sets. What the operator and administrators say stays as it is, also when the extension is
// deleted without its content and made again.
func TestO10OnlyWhatIsOursIsRepaired(t *testing.T) {
	t.Parallel()
	const name = "o10-repaired"
	extendWithCondition(t, name)
	claim(t, name, "False", busy)
	override(t, name, "Unknown")
	said := func() map[string]any {
		spec, _ := operatorCondition(t, name, "1.0.0").Object["spec"].(map[string]any)
		return map[string]any{"conditions": spec["conditions"], "overrides": spec["overrides"]}
	}
	want := said()
	if want["conditions"] == nil || want["overrides"] == nil {
		t.Fatalf("nothing is said: %v", want)
	}
	before := operatorCondition(t, name, "1.0.0").GetResourceVersion()
	remove(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "o10-repaired.v1.0.0-operatorcondition"}})
	exists(t, &rbacv1.Role{}, name, "o10-repaired.v1.0.0-operatorcondition")
	if after := operatorCondition(t, name, "1.0.0").GetResourceVersion(); after != before {
		t.Errorf("the object was written, %s is now %s", before, after)
	}

	patch := client.RawPatch(patchType, []byte(`{"spec": {"deployments": ["other"]}}`))
	if err := theSuite.Admin.Patch(t.Context(), operatorCondition(t, name, "1.0.0"), patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a repair", func(context.Context) error {
		deployments, _, err := unstructured.NestedStringSlice(operatorCondition(t, name, "1.0.0").Object, "spec", "deployments")
		if err == nil && !slices.Equal(deployments, []string{name}) {
			err = fmt.Errorf("deployments are %v", deployments)
		}
		return err
	})
	if diff := cmp.Diff(want, said()); diff != "" {
		t.Errorf("after a repair (-want +got):\n%s", diff)
	}

	uid := operatorCondition(t, name, "1.0.0").GetUID()
	extension := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := theSuite.Admin.Delete(t.Context(), extension, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	gone(t, extension, "", name)
	extendOnly(t, name, version("1.0.0"), inline(`{"operatorConditions": true}`))
	installed(t, name, "1.0.0")
	eventually(t, "an adoption", func(context.Context) error {
		if owner := metav1.GetControllerOf(operatorCondition(t, name, "1.0.0")); owner == nil {
			return errors.New("nobody owns the object")
		}
		return nil
	})
	if diff := cmp.Diff(want, said()); diff != "" || operatorCondition(t, name, "1.0.0").GetUID() != uid {
		t.Errorf("after an adoption (-want +got):\n%s", diff)
	}
	update(t, name, version("1.1.0"))
	held(t, name, "an override says Upgradeable=Unknown")
	override(t, name, "True")
	installed(t, name, "1.1.0")
}

// TestUnreadableClaimsHold: a ServiceAccount that may not read the object any more cannot tell
// whether there is an objection.
func TestUnreadableClaimsHold(t *testing.T) {
	t.Parallel()
	const name = "o-unreadable"
	extendWithCondition(t, name)
	condition := operatorCondition(t, name, "1.0.0")
	binding := &rbacv1.ClusterRoleBinding{}
	exists(t, binding, "", "e2e-"+name)
	remove(t, binding)
	update(t, name, version("1.1.0"))
	matchCondition(t, name, ocv1.TypeReady, func(got string) bool {
		return strings.Contains(got, "it cannot be read whether the operator is ready for it")
	}, "that it cannot be read")
	binding.ResourceVersion, binding.UID = "", ""
	if err := theSuite.Admin.Create(t.Context(), binding); err != nil { // removed at the end like the first one
		t.Fatal(err)
	}
	installed(t, name, "1.1.0")
	gone(t, newOperatorCondition(), name, condition.GetName())
}

// TestRightsForAnOperatorCondition: what `bundle rbac` prints is enough to install and to
// upgrade with it.
func TestRightsForAnOperatorCondition(t *testing.T) {
	t.Parallel()
	const name = "o-rights"
	bringOperatorConditions(t)
	publish(t, operators(name, "1.0.0", "1.1.0")...)
	makeNamespace(t, name)
	makeAccount(t, name)
	extendOnly(t, name, version("1.0.0"), inline(`{"operatorConditions": true}`))
	conditionContains(t, name, ocv1.TypeProgressing, "operatorconditions")
	grantPrinted := func() {
		t.Helper()
		eventually(t, "rights", func(ctx context.Context) error {
			rules, err := theSuite.CommandOutput(ctx, "bundle", "rbac", "clusterextension/"+name)
			if err == nil {
				_, err = theSuite.KubectlOutput(ctx, rules, "apply", "-f", "-")
			}
			return err
		})
	}
	grantPrinted()
	installed(t, name, "1.0.0")
	claim(t, name, "False", busy)
	update(t, name, version("1.1.0"))
	held(t, name, busy)
	grantPrinted()
	claim(t, name, "True", "done")
	installed(t, name, "1.1.0")
}

// TestEarlierContentIsNotRewritten is F70: an earlier version of the controller set
// OPERATOR_CONDITION_NAME for every operator. Its objects are not written for that. The variable
// is removed with the next change.
//
//nolint:paralleltest // it stops the controller of all tests
func TestEarlierContentIsNotRewritten(t *testing.T) {
	const name = "earlier"
	publish(t, operators(name, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")
	deploymentAvailable(t, name, name)
	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	applyWithName(t, name)
	if got := conditionNameOf(t, name); got != "earlier.v1.0.0" {
		t.Fatalf("the earlier version has set %q", got)
	}
	deployment := &appsv1.Deployment{}
	exists(t, deployment, name, name)
	since := time.Now()
	if err := theSuite.startController(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pass", func(context.Context) error {
		if passesOver(t, name, since) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	for _, request := range requestsOfExtensions(t, since) {
		if request.IsWrite() && request.ObjectRef.Namespace == name && request.ResponseStatus.Code != http.StatusNotFound {
			t.Errorf("after a restart: %s", request)
		}
	}
	after := &appsv1.Deployment{}
	exists(t, after, name, name)
	if after.Generation != deployment.Generation || conditionNameOf(t, name) != "earlier.v1.0.0" {
		t.Errorf("generation %d of the Deployment has become %d", deployment.Generation, after.Generation)
	}
	update(t, name, inline(`{"deploymentConfig": {"annotations": {"changed": "yes"}}}`))
	eventually(t, "the variable is removed with a change", func(context.Context) error {
		if got := conditionNameOf(t, name); got != "" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// applyWithName installs again what is installed, as a controller does that sets the variable
// for every operator.
func applyWithName(t *testing.T, name string) {
	t.Helper()
	config := theSuite.Cluster.RESTConfig()
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, connection)
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := applier.New(applier.Config{
		REST: config, Mapper: mapper, SystemNamespace: environment.SystemNamespace, Changed: func(string) {}, Now: time.Now,
		LacksNamespace: func(context.Context, string) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	extension := &ocv1.ClusterExtension{}
	exists(t, extension, "", name)
	owner := object.Owner{Name: name, UID: extension.UID, Namespace: name, ServiceAccount: installer, Package: name}
	state, err := earlier.Observe(t.Context(), owner)
	if err != nil || state.Installed == nil {
		t.Fatalf("state %+v, error %v", state, err)
	}
	parsed, err := bundle.Parse(operators(name, "1.0.0")[0].Bundle())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendering.Objects(bundle.Render(parsed, bundle.Options{InstallNamespace: name}))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range objects {
		if one.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(one.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range containers {
			container, _ := item.(map[string]any)
			env, _ := container["env"].([]any)
			container["env"] = append(env, map[string]any{"name": "OPERATOR_CONDITION_NAME", "value": name + ".v1.0.0"})
		}
		if err := unstructured.SetNestedSlice(one.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := earlier.Apply(t.Context(), owner, installation.Desired{Revision: *state.Installed, Objects: objects}); err != nil {
		t.Fatal(err)
	}
}
