package controller

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestPlanUninstall(t *testing.T) {
	t.Parallel()
	thing := installation.StoredObject{Key: object.Key{Namespace: "ns", Name: "a"}}
	thing.Key.Kind = "Thing"
	used := installation.Use{Definition: "things.test", Count: 2, Own: 1, First: []installation.StoredObject{thing}}
	own := installation.Use{Definition: "things.test", Count: 1, Own: 1}
	unknown := installation.Use{Definition: "others.test", Err: errors.New("you may not")}
	type want struct {
		policy  UninstallPolicy
		byFlag  bool
		keeps   string
		first   string
		steps   int
		refused string
	}
	for name, test := range map[string]struct {
		reason string
		config *ocv1.ClusterExtensionUninstallConfig
		uses   []installation.Use
		want   want
	}{
		"left out": {
			uses: []installation.Use{used}, want: want{policy: UninstallDelete, byFlag: true, first: "everything goes", steps: 1},
		},
		"delete": {
			config: &ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyDelete}, uses: []installation.Use{used},
			want: want{policy: UninstallDelete, first: "everything goes", steps: 1},
		},
		"in use": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse},
			uses:   []installation.Use{used, unknown},
			want: want{
				policy: UninstallRefuseWhileInUse, first: "nothing goes while", steps: 2,
				refused: `deletion is refused while there are custom resources: 1 of things.test: Thing "a" in namespace "ns"; delete them, or set another spec.uninstall`,
			},
		},
		"used by itself": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse},
			uses:   []installation.Use{own}, want: want{policy: UninstallRefuseWhileInUse, first: "nothing goes while", steps: 2},
		},
		"not counted": {
			reason: "the controller may count what the caller may not",
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse},
			uses:   []installation.Use{unknown}, want: want{policy: UninstallRefuseWhileInUse, first: "nothing goes while", steps: 2},
		},
		"first": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResources: ocv1.CustomResourcesUninstallPolicyDeleteFirst}, uses: []installation.Use{used, unknown},
			want: want{policy: UninstallDeleteFirst, first: "custom resources go", steps: 3},
		},
		"keep": {
			config: &ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}, uses: []installation.Use{used},
			want: want{policy: UninstallKeep, keeps: "definitions", first: "definitions are let go of", steps: 2},
		},
		"orphan": {
			config: &ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyOrphan}, uses: []installation.Use{used},
			want: want{policy: UninstallOrphan, keeps: "all", first: "everything is let go of", steps: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &ocv1.ClusterExtension{}
			ext.Name, ext.UID = "x", "u"
			ext.Spec.Uninstall = test.config
			made := PlanUninstall(ext, test.uses)
			got := want{policy: made.Policy, byFlag: made.ByFlag, steps: len(made.Order), refused: made.Refused, first: test.want.first}
			switch {
			case made.KeepsAll:
				got.keeps = "all"
			case made.KeepsDefinitions:
				got.keeps = "definitions"
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if !strings.HasPrefix(made.Order[0], test.want.first) || made.Owner.Name != "x" || made.Owner.UID != "u" {
				t.Errorf("got %+v, want first %q", made, test.want.first)
			}
		})
	}
}
