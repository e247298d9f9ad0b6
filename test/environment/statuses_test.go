package environment_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestStatusesAreJudged writes as the controller would if it lied, for a moment only: each
// write counts, what others write does not, and the suite fails.
func TestStatusesAreJudged(t *testing.T) {
	t.Parallel()
	env, err := environment.Start(t.Context(), environment.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = env.Stop() // the test has failed
		}
	})
	for _, one := range []struct {
		name, manager, reason string
		lies                  bool
	}{
		{name: "liar", manager: "operator-controller", reason: ocv1.ReasonBlocked, lies: true},
		{name: "honest", manager: "operator-controller", reason: ocv1.ReasonRetrying},
		{name: "somebody", manager: "somebody", reason: ocv1.ReasonBlocked, lies: true},
	} {
		extension := environment.Extension(one.name, "default", "installer")
		if err := env.Admin.Create(t.Context(), extension); err != nil {
			t.Fatal(err)
		}
		extension.Status.ObservedGeneration = extension.Generation
		// A person has to act where it is blocked, and this says that work goes on.
		for kind, status := range map[string]metav1.ConditionStatus{ocv1.TypeReady: metav1.ConditionFalse, ocv1.TypeReconciling: metav1.ConditionTrue} {
			meta.SetStatusCondition(&extension.Status.Conditions, metav1.Condition{
				Type: kind, Status: status, Reason: one.reason, Message: "m", ObservedGeneration: extension.Generation,
			})
		}
		if err := env.Admin.Status().Update(t.Context(), extension, client.FieldOwner(one.manager)); err != nil {
			t.Fatal(err)
		}
		if !one.lies {
			continue
		}
		meta.RemoveStatusCondition(&extension.Status.Conditions, ocv1.TypeReconciling)
		meta.SetStatusCondition(&extension.Status.Conditions, metav1.Condition{
			Type: ocv1.TypeStalled, Status: metav1.ConditionTrue, Reason: one.reason, Message: "m", ObservedGeneration: extension.Generation,
		})
		if err := env.Admin.Status().Update(t.Context(), extension, client.FieldOwner(one.manager)); err != nil {
			t.Fatal(err)
		}
	}
	stopped = true
	err = env.Stop()
	if err == nil {
		t.Fatal("a status has misled its readers, and nobody was told")
	}
	const want = "it is stuck, kstatus says InProgress, and Argo CD Progressing: the table allows kstatus Failed, and Argo CD Degraded\n\tClusterExtension liar, generation 1;"
	if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "honest") || strings.Contains(text, "somebody") {
		t.Errorf("want %q and nothing else in:\n%s", want, text)
	}
}
