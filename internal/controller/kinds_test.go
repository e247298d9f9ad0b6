package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

func notServed(kinds ...schema.GroupKind) error {
	var errs []error
	for _, kind := range kinds {
		errs = append(errs, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{"v1"}})
	}
	return fmt.Errorf("wrapped: %w", errors.Join(errs...))
}

func TestLacksIssuer(t *testing.T) {
	t.Parallel()
	other := schema.GroupKind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":      {nil, false},
		"another":      {notServed(other), false},
		"cert-manager": {notServed(other, issuing), true},
		"else":         {errors.New("boom"), false},
	} {
		if got := lacksIssuer(tt.err); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestIssuerThatGoes has an installed extension wait for its issuer for some time,
// and then be installed with another one.
func TestIssuerThatGoes(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.installation.Installed = installed("1.0.0")
	w.installation.Installed.Inputs = digestOf(nil)
	w.catalog["p"] = offering("1.0.0").Package
	w.repairErr = notServed(issuing)
	for range 3 {
		if _, err := w.reconcile(t); !errors.Is(err, w.repairErr) {
			t.Fatal(err)
		}
		if ready := w.ready(t); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "unless it is back within 10 minutes") {
			t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
		}
		w.passed += 3 * time.Minute
	}
	if diff := cmp.Diff([]string{"repair", "repair", "repair"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	w.passed += 2 * time.Minute
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"fetch registry.test/p:v1.0.0", "apply 1.0.0", "write", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	w.repairErr = nil
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"repair"}, w.take()); diff != "" {
		t.Errorf("done by the next pass (-want +got):\n%s", diff)
	}
}

// TestIssuerThatComesBack changes nothing, however often it goes.
func TestIssuerThatComesBack(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.installation.Installed = installed("1.0.0")
	w.installation.Installed.Inputs = digestOf(nil)
	w.catalog["p"] = offering("1.0.0").Package
	for range 5 {
		w.repairErr = notServed(issuing)
		_, _ = w.reconcile(t)
		w.passed += 9 * time.Minute
		w.repairErr = nil
		w.mustReconcile(t)
		if ready := w.ready(t); ready.Status != metav1.ConditionTrue {
			t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
		}
		w.passed += time.Minute
	}
	for _, did := range w.take() {
		if did != "repair" {
			t.Errorf("it did %s", did)
		}
	}
}

// TestWhoLacksKindsIsWoken when the cluster serves others, and not before or after.
func TestWhoLacksKindsIsWoken(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.installation.Installed = installed("1.0.0")
	w.catalog["p"] = offering("1.0.0").Package
	for _, lacking := range []error{nil, notServed(issuing), nil} {
		w.repairErr = lacking
		_, _ = w.reconcile(t)
		if woken := w.matching(t, w.reconciler.toldOtherwise(t.Context())); len(woken) > 0 != (lacking != nil) {
			t.Errorf("%v are woken, lacking %v", woken, lacking)
		}
	}
	if reason := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeProgressing).Reason; reason != ocv1.ReasonSucceeded {
		t.Errorf("Progressing has the reason %s", reason)
	}
}
