// Package apischema holds objects against the definition of their kind, without a cluster: a
// CustomResourceDefinition, an object -> what an API server would refuse when the object is
// created.
package apischema

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Schema is what objects of a kind are held against.
type Schema struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

// New reads a CustomResourceDefinition in YAML, of which the first version counts.
func New(definition []byte) (*Schema, error) {
	read := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, read); err != nil {
		return nil, fmt.Errorf("reading a CustomResourceDefinition: %w", err)
	}
	internal := &apiextensions.CustomResourceValidation{}
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(read.Spec.Versions[0].Schema, internal, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", read.Name, err)
	}
	structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", read.Name, err)
	}
	values, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", read.Name, err)
	}
	return &Schema{structural: structural, values: values, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// Check says what the definition does not allow. It knows that of this program, and not that of
// a cluster, which not everybody may read. Fields that are not known are not looked at.
func (s *Schema) Check(ctx context.Context, object *unstructured.Unstructured) field.ErrorList {
	stored := object.DeepCopy()
	unstructured.RemoveNestedField(stored.Object, "status") // the API server drops it
	defaulting.PruneNonNullableNullsWithoutDefaults(stored.Object, s.structural)
	defaulting.Default(stored.Object, s.structural)
	errs := validation.ValidateCustomResource(nil, stored.Object, s.values)
	if len(errs) > 0 { // what follows may count on the types
		return errs
	}
	errs = listtype.ValidateListSetsAndMaps(nil, s.structural, stored.Object)
	broken, _ := s.rules.Validate(ctx, nil, s.structural, stored.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}
