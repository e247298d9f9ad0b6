package v1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const crdDir = "../../config/crd/bases"

// admission judges manifests by a CRD of config/crd as an API server does.
type admission struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

func readCRD(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(crdDir, "olm.operatorframework.io_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatalf("reading CRD %s: %v", plural, err)
	}
	return crd
}

func newAdmission(t *testing.T, plural string) admission {
	t.Helper()
	published := readCRD(t, plural).Spec.Versions[0].Schema
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(published, internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	values, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return admission{
		structural: structural,
		values:     values,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// create returns what a create of the manifest is rejected for.
func (a admission) create(t *testing.T, manifest object) []string {
	t.Helper()
	return a.update(t, nil, manifest)
}

// update returns what an update from old to manifest is rejected for.
func (a admission) update(t *testing.T, old, manifest object) []string {
	t.Helper()
	var stored any
	if old != nil {
		stored = map[string]any(a.store(old))
	}
	wanted := map[string]any(a.store(manifest))
	errs := validation.ValidateCustomResource(nil, wanted, a.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, a.structural, wanted)...)
	// An API server leaves the rules out when a value has the wrong shape.
	if !anyShapeError(errs) {
		broken, _ := a.rules.Validate(t.Context(), nil, a.structural, wanted, stored, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return violations(errs)
}

// store returns the object as it would be stored: pruned and defaulted.
func (a admission) store(manifest object) object {
	stored := (&unstructured.Unstructured{Object: manifest}).DeepCopy().Object
	pruning.Prune(stored, a.structural, true)
	defaulting.Default(stored, a.structural)
	return stored
}

func anyShapeError(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
			field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// violations names the field and, for a broken rule, its message; for anything
// else the kind of error, as the text is not ours.
func violations(errs field.ErrorList) []string {
	var lines []string
	for _, err := range errs {
		line := err.Field + ": " + err.Type.String()
		if err.Type == field.ErrorTypeInvalid {
			line = err.Field + ": " + err.Detail
		}
		lines = append(lines, line)
	}
	return lines
}

// object is a manifest in its generic form.
type object map[string]any

func parseObject(t *testing.T, manifest string) object {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	parsed := object{}
	// The decoder of the API server, which tells integers from floats.
	if err := json.Unmarshal(text, (*map[string]any)(&parsed)); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// with returns a copy of o that has the field at the dotted path set to value.
func (o object) with(t *testing.T, path string, value any) object {
	t.Helper()
	changed := (&unstructured.Unstructured{Object: o}).DeepCopy().Object
	if err := unstructured.SetNestedField(changed, value, strings.Split(path, ".")...); err != nil {
		t.Fatalf("setting %s: %v", path, err)
	}
	return changed
}

// without returns a copy of o that lacks the field at the dotted path.
func (o object) without(path string) object {
	changed := (&unstructured.Unstructured{Object: o}).DeepCopy().Object
	unstructured.RemoveNestedField(changed, strings.Split(path, ".")...)
	return changed
}

// at returns the value at the dotted path, nil when there is none.
func (o object) at(t *testing.T, path string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(o, strings.Split(path, ".")...)
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	return value
}
