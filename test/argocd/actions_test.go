package argocd_test

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/test/argocd"
)

// What Argo CD's own test of actions takes, which this project's takes too.
type (
	actionTests struct {
		Discovery []discoveryTest `json:"discoveryTests"`
		Actions   []actionTest    `json:"actionTests"`
	}
	discoveryTest struct {
		InputPath string          `json:"inputPath"`
		Result    []argocd.Action `json:"result"`
	}
	actionTest struct {
		Action             string `json:"action"`
		InputPath          string `json:"inputPath"`
		ExpectedOutputPath string `json:"expectedOutputPath"`
	}
)

// action is one that is taken on an object.
type action struct {
	name   string // of the object
	from   captured
	action string
	offers []argocd.Action
	want   func(*unstructured.Unstructured)
}

// TestActions suspends and resumes both kinds, and approves an upgrade.
func TestActions(t *testing.T) {
	t.Parallel()
	catalogs := []action{
		{
			name: "served", from: captured{"catalog-served", "served"}, action: "suspend", want: spec("availabilityMode", "Unavailable"),
			offers: []argocd.Action{{Name: "resume", Disabled: true}, {Name: "suspend"}},
		},
		{
			name: "suspended", from: captured{"catalog-withdrawn", "Serving is False UserSpecifiedUnavailable"}, action: "resume", want: spec("availabilityMode", "Available"),
			offers: []argocd.Action{{Name: "resume"}, {Name: "suspend", Disabled: true}},
		},
	}
	extensions := []action{
		{
			name: "installed", from: captured{"upgrade-manual", "1.0.0 is ready"}, action: "suspend", want: spec("suspend", true),
			offers: []argocd.Action{{Name: "approve", Disabled: true}, {Name: "resume", Disabled: true}, {Name: "suspend"}},
		},
		{
			name: "suspended", from: captured{"upgrade-suspended", "Ready is True Suspended"}, action: "resume", want: withoutSuspend,
			offers: []argocd.Action{{Name: "approve", Disabled: true}, {Name: "resume"}, {Name: "suspend", Disabled: true}},
		},
		{
			name: "pending", from: captured{"upgrade-manual", "Ready is True ApprovalPending"}, action: "approve", want: inCatalog("approvedVersion", "1.1.0"),
			offers: []argocd.Action{{Name: "approve"}, {Name: "resume", Disabled: true}, {Name: "suspend"}},
		},
		{
			name: "pending_with_digest", from: captured{"upgrade-approval", "Ready is True ApprovalPending"}, action: "approve",
			want:   both(inCatalog("approvedVersion", "1.1.0"), inCatalog("approvedDigest", "sha256:"+strings.Repeat("0", 64))),
			offers: []argocd.Action{{Name: "approve"}, {Name: "resume", Disabled: true}, {Name: "suspend"}},
		},
	}
	for kind, ofKind := range map[string][]action{"ClusterCatalog": catalogs, "ClusterExtension": extensions} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			testActions(t, kind, ofKind)
		})
	}
}

// TestApproveANamedBundle writes where the rights of it are agreed to.
func TestApproveANamedBundle(t *testing.T) {
	t.Parallel()
	permissions := map[string]any{"growth": "Approve"}
	pending := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"source":  map[string]any{"sourceType": "Bundle", "bundle": map[string]any{"ref": "registry.test/p:v1"}},
			"install": map[string]any{"preflight": map[string]any{"permissions": permissions}},
		},
		"status": map[string]any{"pending": map[string]any{"bundle": map[string]any{"version": "1.1.0"}, "digest": "sha256:1"}},
	}}
	want := pending.DeepCopy()
	both(inPermissions("approvedVersion", "1.1.0"), inPermissions("approvedDigest", "sha256:1"))(want)
	changed, err := argocd.Act(t.Context(), scriptOf(t, "ClusterExtension", "actions/approve/action.lua"), pending)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want.Object, changed.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func inPermissions(field string, value any) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(obj.Object, value, "spec", "install", "preflight", "permissions", field); err != nil {
			panic(err)
		}
	}
}

func testActions(t *testing.T, kind string, ofKind []action) {
	t.Helper()
	discovery, folder := scriptOf(t, kind, "actions/discovery.lua"), filepath.Join(folderOf(t, kind), "actions")
	var expected actionTests
	for _, test := range ofKind {
		before, want := test.from.object(t), test.from.object(t)
		offers, err := argocd.Discover(t.Context(), discovery, before)
		slices.SortFunc(offers, func(a, b argocd.Action) int { return cmp.Compare(a.Name, b.Name) })
		if err != nil || !slices.Equal(offers, test.offers) {
			t.Errorf("%s: it offers %v, %v; want %v", test.name, offers, err, test.offers)
		}
		changed, err := argocd.Act(t.Context(), scriptOf(t, kind, "actions/"+test.action+"/action.lua"), before)
		if err != nil {
			t.Fatal(err)
		}
		test.want(want)
		if diff := gocmp.Diff(want.Object, changed.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.action, diff)
		}
		input, output := "testdata/"+test.name+".yaml", "testdata/"+test.name+"_"+test.action+".yaml"
		compare(t, filepath.Join(folder, input), marshal(t, test.from.object(t).Object))
		compare(t, filepath.Join(folder, output), marshal(t, want.Object))
		expected.Discovery = append(expected.Discovery, discoveryTest{InputPath: input, Result: offers})
		expected.Actions = append(expected.Actions, actionTest{Action: test.action, InputPath: input, ExpectedOutputPath: output})
	}
	compare(t, filepath.Join(folder, "action_test.yaml"), marshal(t, expected))
}

func withoutSuspend(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "spec", "suspend")
}

func inCatalog(field string, value any) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(obj.Object, value, "spec", "source", "catalog", field); err != nil {
			panic(err)
		}
	}
}
