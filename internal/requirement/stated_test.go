package requirement_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

func TestStated(t *testing.T) {
	t.Parallel()
	properties := []*requirement.Property{
		{Type: requirement.KubeVersion, Value: json.RawMessage(`"\u003e=1.25.0-0"`)},
		{Type: "olm.package", Value: json.RawMessage(`{"packageName":"p","version":"1.0.0"}`)},
		{Type: "olm.gvk.required", Value: json.RawMessage(`{"group":"g","kind":"K","version":"v1"}`)},
	}
	want := []string{"Kubernetes >=1.25.0-0", `olm.gvk.required {"group":"g","kind":"K","version":"v1"}`, "minKubeVersion 1.30.0"}
	if diff := cmp.Diff(want, requirement.Stated(properties, "1.30.0")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
