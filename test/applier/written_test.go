package applier_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// TestWhatWasWrittenIsTold: by the name of the object, whatever was sent for it, with the
// fields that a request has changed, or has tried to.
func TestWhatWasWrittenIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "told")
	f.owner.Replaceable = preflight.Replaceable([]string{"Deployment"})
	// The API server drops what the schema does not have.
	definition := issuers("told.test")
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object"}
	f.forgetful(t)
	f.define(t, definition)
	dropped := func(value string) *unstructured.Unstructured {
		thing := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": value}}}
		thing.SetGroupVersionKind(kindOf(definition))
		thing.SetName("dropped")
		return thing
	}
	check := func(what string, got map[object.Key]object.Difference, want map[string]object.Difference) {
		t.Helper()
		byName := map[string]object.Difference{}
		for key, difference := range got {
			difference.Managers = nil
			byName[key.Name] = difference
		}
		if diff := cmp.Diff(want, byName); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}

	result := f.apply(t, "1.0.0", configMap("a", "1"), configMap("gone", "1"), selecting(t, "a"), dropped("1"))
	missing := object.Difference{Missing: true}
	check("an installation", result.Differences, map[string]object.Difference{"a": missing, "gone": missing, "d": missing, "dropped": missing})
	check("requests of it that changed nothing", result.Void, map[string]object.Difference{})

	result = f.apply(t, "1.1.0", configMap("a", "2"), configMap("new", "1"), selecting(t, "b"), dropped("2"))
	check("an upgrade", result.Differences, map[string]object.Difference{
		"a": {Fields: []string{"data.key"}}, "new": missing, "d": {Replaced: true, Fields: []string{"spec.selector"}},
	})
	check("requests of it that changed nothing", result.Void, map[string]object.Difference{"dropped": {Fields: []string{"spec.a"}}})
	for key, change := range result.Changes {
		if (change == object.Deleted) != (key.Name == "gone") {
			t.Errorf("%s was %s", key, change)
		}
	}

	live := f.live(t, "a")
	live.Data["key"] = "theirs"
	if err := admin.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	f.observe(t)
	result = f.repair(t)
	check("a repair", result.Differences, map[string]object.Difference{"a": {Fields: []string{"data.key"}}})
	check("requests of it that changed nothing", result.Void, map[string]object.Difference{})
}
