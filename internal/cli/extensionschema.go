package cli

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/config/crd"
)

// extensionSchema is what an API server holds a ClusterExtension against that is created.
type extensionSchema struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

var readExtensionSchema = sync.OnceValues(func() (extensionSchema, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(crd.ClusterExtension, definition); err != nil {
		return extensionSchema{}, err
	}
	internal := &apiextensions.CustomResourceValidation{}
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(definition.Spec.Versions[0].Schema, internal, nil)
	if err != nil {
		return extensionSchema{}, err
	}
	structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return extensionSchema{}, err
	}
	values, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	return extensionSchema{structural: structural, values: values, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, err
})

// checkSchema refuses what the definition of the kind does not allow. It knows the definition
// of this program, and not that of the cluster, which not everybody may read.
func checkSchema(ctx context.Context, extension *unstructured.Unstructured) error {
	held, err := readExtensionSchema()
	if err != nil {
		return fmt.Errorf("reading the definition of ClusterExtension: %w", err)
	}
	stored := extension.DeepCopy()
	unstructured.RemoveNestedField(stored.Object, "status") // the API server drops it
	defaulting.PruneNonNullableNullsWithoutDefaults(stored.Object, held.structural)
	defaulting.Default(stored.Object, held.structural)
	errs := validation.ValidateCustomResource(nil, stored.Object, held.values)
	if len(errs) == 0 { // rules may count on the types
		errs, _ = held.rules.Validate(ctx, nil, held.structural, stored.Object, nil, celconfig.RuntimeCELCostBudget)
	}
	return errs.ToAggregate()
}
