package storeddata

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/utils/ptr"
)

// version is the schema of one version of a definition, ready for use.
type version struct {
	// structural is nil if the definition is of the time before schemas had to be
	// structural. Nothing is removed or filled in then.
	structural *structuralschema.Structural
	preserves  bool // all unknown fields
	embeds     bool // has objects with metadata of their own
	openapi    validation.SchemaValidator
	cel        *cel.Validator // nil if there are no rules
	scale      *apiextensionsv1.CustomResourceSubresourceScale
}

var errNoSchema = errors.New("has no schema")

// compile prepares the schema of a version.
func compile(spec *apiextensionsv1.CustomResourceDefinitionVersion, preserves bool) (*version, error) {
	if spec.Schema == nil || spec.Schema.OpenAPIV3Schema == nil {
		return nil, errNoSchema
	}
	schema := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(spec.Schema.OpenAPIV3Schema.DeepCopy(), schema, nil); err != nil {
		return nil, err
	}
	v := &version{preserves: preserves}
	if spec.Subresources != nil {
		v.scale = spec.Subresources.Scale
	}
	var err error
	if v.structural, err = structuralschema.NewStructural(schema); err != nil && !v.preserves {
		return nil, err
	}
	if v.openapi, _, err = validation.NewSchemaValidator(schema); err != nil {
		return nil, err
	}
	if v.structural == nil {
		return v, nil
	}
	// Defaults are shared with the schema until here.
	v.structural = v.structural.DeepCopy()
	if !v.preserves {
		if err := defaulting.PruneDefaults(v.structural); err != nil {
			return nil, err
		}
	}
	v.embeds = embedsObjects(v.structural)
	v.cel = cel.NewValidator(withoutTransitions(v.structural), true, celconfig.PerCallLimit)
	return v, nil
}

// withoutTransitions is the schema without the rules that may be asked with or
// without an earlier object. The API server takes an object without one as new,
// which a stored object is not. It skips other rules about earlier objects itself.
func withoutTransitions(schema *structuralschema.Structural) *structuralschema.Structural {
	schema = schema.DeepCopy()
	filter := func(extensions *structuralschema.ValidationExtensions) bool {
		rules := len(extensions.XValidations)
		extensions.XValidations = slices.DeleteFunc(extensions.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
			return ptr.Deref(rule.OptionalOldSelf, false)
		})
		return len(extensions.XValidations) != rules
	}
	visitor := structuralschema.Visitor{
		Structural: func(s *structuralschema.Structural) bool { return filter(&s.ValidationExtensions) },
		NestedValueValidation: func(n *structuralschema.NestedValueValidation) bool {
			return filter(&n.ValidationExtensions)
		},
	}
	visitor.Visit(schema)
	return schema
}

// embedsObjects says whether the schema has embedded objects. Most have none, and
// need not be walked for them with each object.
func embedsObjects(schema *structuralschema.Structural) (found bool) {
	visitor := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		found = found || s.XEmbeddedResource
		return false
	}}
	visitor.Visit(schema)
	return found
}

// prune removes the fields that the schema does not know, and gives their paths.
// Objects that are part of others lose unknown fields of their metadata in fill.
func (v *version) prune(object map[string]any) []string {
	if v.preserves || v.structural == nil {
		return nil
	}
	return pruning.PruneWithOptions(object, v.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// fill drops nulls that mean nothing, brings the metadata of embedded objects
// into form, and fills in defaults. The paths are those of fields of such
// metadata that are not known.
func (v *version) fill(object map[string]any) (paths []string, errs field.ErrorList) {
	if v.structural == nil {
		return nil, nil
	}
	if !v.preserves {
		defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	}
	if v.embeds {
		err, unknown := objectmeta.CoerceWithOptions(nil, object, v.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
		if err != nil {
			errs = append(errs, err)
		}
		paths = unknown
	}
	defaulting.Default(object, v.structural)
	return paths, errs
}

// check holds all but the rules against an object that was filled in.
func (v *version) check(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, v.openapi)
	errs = append(errs, checkScale(object, v.scale)...)
	if v.embeds {
		errs = append(errs, objectmeta.Validate(ctx, nil, object, v.structural, false)...)
	}
	return append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
}

// obey holds the rules against an object that was filled in.
func (v *version) obey(ctx context.Context, object map[string]any) field.ErrorList {
	errs, _ := v.cel.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}
