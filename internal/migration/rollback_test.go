package migration

import (
	"fmt"
	"net/http"
	"testing"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
)

// TestApprove: a plan is approved when it requires an approval, and not before it has a phase.
func TestApprove(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status   string
		approved bool
	}{
		"no phase yet":      {status: `{}`},
		"another phase":     {status: `{"phase":"Planning"}`},
		"requires approval": {status: `{"phase":"RequiresApproval"}`, approved: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			approved := false
			c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				approved = approved || r.Method == http.MethodPatch
				plan := fmt.Sprintf(`{"kind":"InstallPlan","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"namespace":"team","name":"install-1","uid":"p"},
"spec":{"approval":"Manual","approved":false,"clusterServiceVersionNames":["sample.v1"]},"status":%s}`, tc.status)
				if r.Method == http.MethodGet {
					plan = fmt.Sprintf(`{"kind":"InstallPlanList","apiVersion":"operators.coreos.com/v1alpha1","metadata":{},"items":[%s]}`, plan)
				}
				fmt.Fprint(w, plan)
			}))
			m := move{Cluster: c, run: quietly(t), ext: &ocv1.ClusterExtension{}, record: classic.Record{
				CSV: classic.Ref{Reference: object.Reference{Namespace: "team", Name: "sample.v1"}},
			}}
			isUnderWay, err := m.approve(t.Context())
			if err != nil || !isUnderWay || approved != tc.approved {
				t.Errorf("under way: %t, approved: %t, error %v; want approved: %t", isUnderWay, approved, err, tc.approved)
			}
		})
	}
}
