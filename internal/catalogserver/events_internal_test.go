package catalogserver

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestStatusThatIsLogged: a fault and its end have a line about the status, and what has a
// line of its own has no second one.
func TestStatusThatIsLogged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, ready string
		want          bool // a line of its own
	}{
		"stored":                 {ready: ocv1.ReasonSucceeded, want: true},
		"stored, after a pull":   {before: ocv1.ReasonPulling, ready: ocv1.ReasonSucceeded, want: true},
		"removed":                {before: ocv1.ReasonSucceeded, ready: ocv1.ReasonUnavailable, want: true},
		"pulled":                 {ready: ocv1.ReasonPulling, want: true},
		"at fault":               {before: ocv1.ReasonSucceeded, ready: ocv1.ReasonRetrying},
		"at fault for good":      {before: ocv1.ReasonRetrying, ready: ocv1.ReasonBlocked},
		"well again":             {before: ocv1.ReasonRetrying, ready: ocv1.ReasonSucceeded},
		"well again, by an edit": {before: ocv1.ReasonBlocked, ready: ocv1.ReasonSucceeded},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before ocv1.ClusterCatalogStatus
			if tc.before != "" {
				before.Conditions = []metav1.Condition{{Type: ocv1.TypeReady, Reason: tc.before}}
			}
			if got := isLogged(before, metav1.Condition{Type: ocv1.TypeReady, Reason: tc.ready}); got != tc.want {
				t.Errorf("it has a line of its own: %t, want %t", got, tc.want)
			}
		})
	}
}
