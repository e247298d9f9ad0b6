package migration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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

// TestRightsGetTheirOwnerBack: a move that is taken back half-way leaves roles in other namespaces with the
// owners that they had before.
func TestRightsGetTheirOwnerBack(t *testing.T) {
	t.Parallel()
	const owners = `[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"sample.v1","uid":"copy","controller":false,"blockOwnerDeletion":false},
{"apiVersion":"v1","kind":"ConfigMap","name":"theirs","uid":"other"}]`
	binding := []byte(`{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"namespace":"elsewhere","name":"sample","uid":"b","resourceVersion":"1",
"labels":{"olm.owner":"sample.v1","olm.owner.namespace":"team","olm.owner.kind":"ClusterServiceVersion"},"ownerReferences":` + owners + `}}`)
	patches := 0
	c := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "clusterserviceversions") {
			fmt.Fprint(w, `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"namespace":"elsewhere","name":"sample.v1","uid":"copy"}}`)
			return
		}
		if r.Method == http.MethodPatch {
			patches++
			change, err := io.ReadAll(r.Body)
			if err == nil {
				binding, err = jsonpatch.MergePatch(binding, change)
			}
			if err != nil {
				t.Error(err)
			}
		}
		_, _ = w.Write(binding)
	}))
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{rbacv1.SchemeGroupVersion})
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	c.mapper = mapper
	ref := classic.Ref{Reference: object.Reference{Group: rbacv1.GroupName, Kind: "RoleBinding", Namespace: "elsewhere", Name: "sample"}, UID: "b"}
	m := move{Cluster: c, run: quietly(t), ext: &ocv1.ClusterExtension{}, record: classic.Record{
		CSV: classic.Ref{Reference: object.Reference{Namespace: "team", Name: "sample.v1"}}, Deleted: []classic.Ref{ref},
	}}
	uids := func() (found []types.UID) {
		var live metav1.PartialObjectMetadata
		if err := json.Unmarshal(binding, &live); err != nil {
			t.Fatal(err)
		}
		for _, owner := range live.OwnerReferences {
			found = append(found, owner.UID)
		}
		return found
	}
	for range 2 { // the second call changes nothing
		if err := m.keepRights(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := uids(); !slices.Equal(got, []types.UID{"other"}) {
			t.Errorf("owners after keepRights: %q, want only the other one", got)
		}
	}
	for range 2 {
		if err := m.returnRights(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := uids(); !slices.Equal(got, []types.UID{"other", "copy"}) {
			t.Errorf("owners after returnRights: %q, want the other one and the copy", got)
		}
	}
	if patches != 2 {
		t.Errorf("there were %d patches, want 2", patches)
	}
}
