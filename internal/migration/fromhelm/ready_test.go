package fromhelm

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
)

// TestRequireReady: a condition of an earlier spec does not show that the extension is ready.
func TestRequireReady(t *testing.T) {
	t.Parallel()
	condition := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: ocv1.TypeReady, Status: status, ObservedGeneration: generation, Message: "installed"}}
	}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		absent     bool
		want       string // part of the error; empty for none
	}{
		"ready":                   {conditions: condition(metav1.ConditionTrue, 2)},
		"not ready":               {conditions: condition(metav1.ConditionFalse, 2), want: "nothing was changed: installed:"},
		"ready by an older spec":  {conditions: condition(metav1.ConditionTrue, 1), want: "has not reconciled its last change yet"},
		"nothing is installed":    {conditions: condition(metav1.ConditionTrue, 2), absent: true, want: "is not ready"},
		"no controller has begun": {want: "is not ready, and nothing was changed: wait"},
	} {
		ext := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 2}}
		ext.Status.Conditions = test.conditions
		if !test.absent {
			ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{}
		}
		err := requireReady(ext, helmstore.Name{Namespace: "ns", Name: "x"})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
