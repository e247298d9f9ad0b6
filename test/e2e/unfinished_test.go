package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestUpgradeThatFailedHalfWayIsTakenBack has a quota stop an upgrade between two
// ConfigMaps, and then closes the way forward.
func TestUpgradeThatFailedHalfWayIsTakenBack(t *testing.T) {
	t.Parallel()
	const name = "half-way"
	all := operators(name, "1.0.0", "1.1.0")
	all[1].ConfigMaps = append(all[1].ConfigMaps, "added")
	publish(t, all...)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	denyMore(t, name)

	update(t, name, version("1.1.0"))
	conditionContains(t, name, ocv1.TypeProgressing, "exceeded quota")
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
	remove(t, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}})
	update(t, name, version("1.1.0"))
	installed(t, name, "1.1.0")
	settingsAre(t, name, "1.1.0")
	exists(t, &corev1.ConfigMap{}, name, "added")
}

// denyMore lets no other ConfigMap be created in a namespace than there are.
func denyMore(t *testing.T, namespace string) {
	t.Helper()
	const counted = corev1.ResourceName("count/configmaps")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse("1")}},
	}
	if err := theSuite.Admin.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the count of ConfigMaps", func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if used := quota.Status.Used[counted]; used.IsZero() {
			return fmt.Errorf("status is %+v", quota.Status)
		}
		return nil
	})
}

func settingsAre(t *testing.T, namespace, version string) {
	t.Helper()
	settings := &corev1.ConfigMap{}
	exists(t, settings, namespace, "settings")
	if got := settings.Data["version"]; got != version {
		t.Errorf("settings are those of %q, want %s", got, version)
	}
}
