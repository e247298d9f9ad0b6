package requirement_test

import (
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// TestRangesOfKubernetes are those of charts, which Helm understands as it does: vector C12.
func TestRangesOfKubernetes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason      string
		kubeVersion string
		kubernetes  string
		want        string
	}{
		"within":              {kubeVersion: ">=1.25.0-0 <1.40.0", kubernetes: "v1.33.2"},
		"of a vendor":         {kubeVersion: ">=1.25.0-0", kubernetes: "v1.33.4-gke.100"},
		"too old":             {kubeVersion: ">=1.40.0", kubernetes: "v1.33.2", want: `requires Kubernetes ">=1.40.0", the cluster has "v1.33.2"`},
		"too new":             {kubeVersion: "<1.30.0", kubernetes: "v1.33.2", want: `requires Kubernetes "<1.30.0", the cluster has "v1.33.2"`},
		"vendors left out":    {reason: "as Helm has it", kubeVersion: ">=1.25.0", kubernetes: "v1.33.4-gke.100", want: `requires Kubernetes ">=1.25.0", the cluster has "v1.33.4-gke.100"`},
		"not a range":         {kubeVersion: "new", kubernetes: "v1.33.2", want: `requires Kubernetes "new", which is not a valid range`},
		"cluster not known":   {kubeVersion: ">=1.40.0"},
		"nothing is required": {kubernetes: "v1.33.2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := requirement.OfContent(&bundle.Bundle{Chart: &bundle.Chart{KubeVersion: test.kubeVersion}})
			if list.Empty() != (test.kubeVersion == "") {
				t.Fatalf("the list is empty: %v", list.Empty())
			}
			result := requirement.NewChecker(requirement.Cluster{Kubernetes: test.kubernetes}).Check(list)
			got := ""
			for _, unmet := range result.Unmet {
				got += unmet.Text
			}
			if got != test.want || result.Err != nil {
				t.Errorf("unmet %q, %v; want %q", got, result.Err, test.want)
			}
		})
	}
}

// TestRangesInCatalogs are those that catalogs state of charts, with the same words.
func TestRangesInCatalogs(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`">=1.25.0-0"`: "",
		`">=1.40.0"`:   `requires Kubernetes ">=1.40.0", the cluster has "v1.33.2"`,
		`"new"`:        `states a requirement by clusterextensions.dev/kubeVersion that cannot be read: "new" is no range of versions: improper constraint: "new"`,
		`""`:           `states a requirement by clusterextensions.dev/kubeVersion that cannot be read: "" is no range of versions: improper constraint: ""`,
		`1.25`:         "states a requirement by clusterextensions.dev/kubeVersion that cannot be read: json: cannot unmarshal number into Go value of type string",
		`">=1.0.0-0` + strings.Repeat(" ", 248) + `"`: "states a requirement by clusterextensions.dev/kubeVersion that cannot be read: more than 256 bytes",
	} {
		stated := []*requirement.Property{{Type: requirement.KubeVersion, Value: []byte(value)}}
		result := requirement.NewChecker(requirement.Cluster{Kubernetes: "v1.33.2"}).Check(requirement.Parse(stated, ""))
		got := ""
		for _, unmet := range result.Unmet {
			got += unmet.Text
		}
		if got != want || result.Err != nil {
			t.Errorf("%s: unmet %q, %v; want %q", value, got, result.Err, want)
		}
	}
}
