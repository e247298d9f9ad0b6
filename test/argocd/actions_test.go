package argocd_test

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

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

// TestActions suspends a catalog and resumes it.
func TestActions(t *testing.T) {
	t.Parallel()
	const kind = "ClusterCatalog"
	discovery, folder := scriptOf(t, kind, "actions/discovery.lua"), filepath.Join(folderOf(t, kind), "actions")
	var expected actionTests
	for _, test := range []struct {
		name   string
		from   captured
		action string
		mode   string
		offers []argocd.Action
	}{
		{
			name: "served", from: captured{"catalog-served", "served"}, action: "suspend", mode: "Unavailable",
			offers: []argocd.Action{{Name: "resume", Disabled: true}, {Name: "suspend"}},
		},
		{
			name: "suspended", from: captured{"catalog-withdrawn", "Serving is False UserSpecifiedUnavailable"}, action: "resume", mode: "Available",
			offers: []argocd.Action{{Name: "resume"}, {Name: "suspend", Disabled: true}},
		},
	} {
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
		spec("availabilityMode", test.mode)(want)
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
