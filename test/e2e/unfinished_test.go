package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestUpgradeThatFailedHalfWayIsTakenBack has an upgrade stopped between two
// ConfigMaps, and then closes the way forward.
func TestUpgradeThatFailedHalfWayIsTakenBack(t *testing.T) {
	t.Parallel()
	const name = "half-way"
	all := operators(name, "1.0.0", "1.1.0")
	all[1].ConfigMaps = append(all[1].ConfigMaps, "added")
	publish(t, all...)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	allow := refuse(t, name, "added")

	update(t, name, version("1.1.0"))
	conditionContains(t, name, ocv1.TypeProgressing, "refused by the test")
	settingsAre(t, name, "1.1.0")

	// For some time it is left as it is: the way may open again.
	update(t, name, version("3.x"))
	const leftAlone = "an upgrade that was begun is left as it is for now"
	conditionContains(t, name, ocv1.TypeReady, leftAlone)
	closed := time.Now()
	time.Sleep(5 * time.Second)
	settingsAre(t, name, "1.1.0")

	// Then all of the installed version is on the cluster again, and is repaired.
	conditionContains(t, name, ocv1.TypeReady, "an upgrade that was begun is taken back")
	t.Logf("taken back after %s", time.Since(closed))
	settingsAre(t, name, "1.0.0")
	condition(t, name, ocv1.TypeInstalled, "True Succeeded: Installed bundle registry.test/half-way:v1.0.0 successfully")
	remove(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}})
	exists(t, &corev1.Service{}, name, name)

	// The way forward is as open as before.
	allow()
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
	settingsAre(t, name, "1.1.0")
	exists(t, &corev1.ConfigMap{}, name, "added")
}

// refuse has the API server refuse, in a namespace, ConfigMaps of a name, except on
// trial: what is refused on trial is never begun.
func refuse(t *testing.T, namespace, name string) (undo func()) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "e2e-" + namespace}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{
			Expression: fmt.Sprintf("request.namespace != %q || object.metadata.name != %q || request.dryRun", namespace, name),
			Message:    "refused by the test",
		}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        meta.Name,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	for _, object := range []client.Object{policy, binding} {
		if err := theSuite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, object) })
	}
	eventually(t, "the refusal of "+name, func(ctx context.Context) error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		err := theSuite.Admin.Create(ctx, probe)
		if err == nil {
			return errors.Join(errors.New("not refused yet"), theSuite.Admin.Delete(ctx, probe))
		}
		if !strings.Contains(err.Error(), "refused by the test") {
			return err
		}
		return nil
	})
	return func() { remove(t, binding) }
}

func settingsAre(t *testing.T, namespace, version string) {
	t.Helper()
	settings := &corev1.ConfigMap{}
	exists(t, settings, namespace, "settings")
	if got := settings.Data["version"]; got != version {
		t.Errorf("settings are those of %q, want %s", got, version)
	}
}
