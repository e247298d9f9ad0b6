package config_test

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestOperatorConditions: operators that were built with either version find theirs, and only
// the stored one has what they say. It is nothing that everybody gets.
func TestOperatorConditions(t *testing.T) {
	t.Parallel()
	objects := build(t, "operatorconditions")
	if len(objects) != 1 {
		t.Fatalf("%d objects, want the definition", len(objects))
	}
	definition, ok := objects[0].(*apiextensionsv1.CustomResourceDefinition)
	if !ok || definition.Name != "operatorconditions.operators.coreos.com" {
		t.Fatalf("got %T %q", objects[0], objects[0].GetName())
	}
	hasConditions := map[string]bool{"v1": false, "v2": true}
	for _, version := range definition.Spec.Versions {
		want, known := hasConditions[version.Name]
		delete(hasConditions, version.Name)
		_, has := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["conditions"]
		if !known || !version.Served || version.Storage != want || has != want || version.Subresources.Status == nil {
			t.Errorf("version %q is served: %t, stored: %t, with conditions in its spec: %t", version.Name, version.Served, version.Storage, has)
		}
	}
	if len(hasConditions) > 0 {
		t.Errorf("there is no version of %v", hasConditions)
	}
	for _, object := range build(t, "default") {
		if object.GetName() == definition.Name {
			t.Error("config/default has it")
		}
	}
	if names := definition.Spec.Names; !slices.Equal(names.ShortNames, []string{"condition"}) || !slices.Equal(names.Categories, []string{"olm"}) {
		t.Errorf("names are %+v", names)
	}
}
