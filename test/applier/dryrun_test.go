package applier_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func service(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return parse(t, `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}], selector: {a: b}}}`)
}

// checkRefused expects the refusal of one object and no trace of the others.
func (f *fixture) checkRefused(t *testing.T, result installation.Result, err error, object string) {
	t.Helper()
	var failures *plan.ObjectsError
	if !errors.As(err, &failures) || len(failures.Failures) != 1 || failures.Failures[0].Object.Name != object {
		t.Fatalf("err = %v, want it to be about %s alone", err, object)
	}
	if result.Began {
		t.Error("the operation began to write")
	}
}

func TestRefusalByAPolicyComesBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "policy")
	f.forbidDeployments(t)
	result, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", configMap("a", "1"), service(t), deployment(t)))
	f.checkRefused(t, result, err, "d")
	if !strings.Contains(err.Error(), `Deployment "d"`) || !strings.Contains(err.Error(), "no deployments here") {
		t.Errorf("message %q does not say what is refused and why", err)
	}
	if f.live(t, "a") != nil || len(f.records(t)) != 0 {
		t.Error("something was written")
	}
}

// forbidDeployments in the namespace of the fixture, and waits until that holds.
func (f *fixture) forbidDeployments(t *testing.T) {
	t.Helper()
	name := f.owner.Namespace + ".test"
	create(t, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.owner.Namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no deployments here"}},
		},
	})
	create(t, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
	another := deployment(t)
	another.SetName("another")
	f.waitRefused(t, another)
}

// waitRefused waits until nobody can create the object.
func (f *fixture) waitRefused(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	object.SetNamespace(f.owner.Namespace)
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := admin.Create(ctx, object.DeepCopy(), client.DryRunAll)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefusalByAQuotaComesBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "quota")
	none := corev1.ResourceList{corev1.ResourceServices: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Hard: none},
	}
	create(t, quota)
	// The quota controller comes to the same, but waits while kinds come and go.
	counted := quota.DeepCopy()
	counted.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	if err := admin.Status().Patch(t.Context(), counted, client.MergeFrom(quota)); err != nil {
		t.Fatal(err)
	}
	f.waitRefused(t, service(t))
	result, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.0.0", configMap("a", "1"), service(t)))
	f.checkRefused(t, result, err, "s")
	if f.live(t, "a") != nil || len(f.records(t)) != 0 {
		t.Error("something was written")
	}
}

// TestUpgradesAreTried has upgrades with a change that the API server never allows
// beside one that it does.
func TestUpgradesAreTried(t *testing.T) {
	t.Parallel()
	immutable := func(value string) *unstructured.Unstructured {
		object := configMap("fixed", value)
		object.Object["immutable"] = true
		return object
	}
	selecting := func(app string) *unstructured.Unstructured {
		object := deployment(t)
		for _, fields := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
			if err := unstructured.SetNestedField(object.Object, app, append(fields, "app")...); err != nil {
				t.Fatal(err)
			}
		}
		return object
	}
	tests := map[string]struct {
		before, after *unstructured.Unstructured
		refused       string
	}{
		"selector":       {before: selecting("d"), after: selecting("e"), refused: "d"},
		"immutable data": {before: immutable("1"), after: immutable("2"), refused: "fixed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "tried-"+strings.ReplaceAll(name, " ", "-"))
			f.apply(t, "1.0.0", configMap("a", "1"), tc.before)
			result, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", configMap("a", "2"), configMap("b", "2"), tc.after))
			f.checkRefused(t, result, err, tc.refused)
			if f.live(t, "a").Data["key"] != "1" || f.live(t, "b") != nil || len(f.records(t)) != 1 {
				t.Error("something was written")
			}
			if state := f.observe(t); installed(state) != "1.0.0" || state.Unfinished {
				t.Errorf("state = %+v, want the installed revision as it was", state)
			}
		})
	}
}

// TestRequestsOfTrials has one changed object that is tried, one that is not since it
// is plain data, and one that stays the same. None of them is read.
func TestRequestsOfTrials(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "trials")
	watched := f.restartWatched(t)
	f.apply(t, "1.0.0", configMap("a", "1"), service(t), deployment(t))
	f.rollOut(t)
	f.awaitVersion(t, watched, deployment(t))
	f.requests.take()
	changed := deployment(t)
	if err := unstructured.SetNestedField(changed.Object, int64(2), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	f.apply(t, "1.1.0", configMap("a", "2"), service(t), changed)
	want := map[string]int{"ASK rights": 1, "GET owner": 1, "GET records": 1, "POST records": 1, "PUT records": 2, "TRY content": 1, "PATCH content": 2}
	if diff := cmp.Diff(want, countsOf(f.requests.take())); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestRevisionsThatBringWhatTheyRestOn have objects that the API server would
// refuse as long as the others are not there.
func TestRevisionsThatBringWhatTheyRestOn(t *testing.T) {
	t.Parallel()
	t.Run("a namespace", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, "brings-namespace")
		inside := configMap("inside", "1")
		inside.SetNamespace(f.owner.Namespace + "-more")
		f.apply(t, "1.0.0", inside, parse(t, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s-more}}`, f.owner.Namespace)))
	})
	t.Run("a role", func(t *testing.T) {
		t.Parallel()
		f := newPowerlessFixture(t, "brings-role")
		create(t, &rbacv1.Role{ // with all that it grants, but not the right to bind what it has not
			ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: account},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
				{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"get", "create", "patch"}},
			},
		})
		create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: account},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		})
		f.waitAllowed(t)
		granting := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: granted},
		  rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}]}`)
		binding := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: granted},
		  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: granted}, subjects: [{kind: ServiceAccount, name: installer, namespace: default}]}`)
		f.apply(t, "1.0.0", granting, binding)
		tooMuch := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: more},
		  rules: [{apiGroups: [""], resources: [configmaps], verbs: [delete]}]}`)
		result, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", granting, binding, tooMuch))
		missing, ok := errors.AsType[*permission.MissingError](err)
		if !ok || len(missing.Rules) != 1 || missing.Rules[0].Verbs[0] != "delete" || result.Began {
			t.Errorf("result = %+v, err = %v, want what the new role grants, and the binding of the other one to pass", result, err)
		}
	})
}

// TestWebhooksThatCannotBeTried have the API server refuse the trial and nothing
// else.
func TestWebhooksThatCannotBeTried(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "untriable")
	f.restartWith(t, func(config *rest.Config) { config.Wrap(refuseTrials) })
	f.apply(t, "1.0.0", configMap("a", "1"), service(t))
	f.apply(t, "1.1.0", configMap("a", "2"), parse(t,
		`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 81}], selector: {a: b}}}`))
	if live := f.live(t, "a"); live == nil || live.Data["key"] != "2" {
		t.Errorf("a = %+v", live)
	}
}

func refuseTrials(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if !isTrial(req) {
			return next.RoundTrip(req)
		}
		status := apierrors.NewBadRequest(`admission webhook "w" does not support dry run`).Status()
		body, err := json.Marshal(status)
		return &http.Response{
			StatusCode: http.StatusBadRequest,
			Header:     http.Header{"Content-Type": []string{"application/json"}},
			Body:       io.NopCloser(strings.NewReader(string(body))),
			Request:    req,
		}, err
	})
}
