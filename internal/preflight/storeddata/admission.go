package storeddata

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// SchemaError says that the API server would not take the new definition, or
// that its schema cannot be understood here; its objects cannot be checked.
type SchemaError struct {
	// Definition is the name of the CustomResourceDefinition.
	Definition string
	// Problems is what is wrong, in the words of the API server: sorted, at most
	// ten, each one line.
	Problems []string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s cannot be used: %s", e.Definition, strings.Join(e.Problems, "; "))
}

func newSchemaError(definition string, problems ...string) *SchemaError {
	for i := range problems {
		problems[i] = excerpt.Line(problems[i], maxText)
	}
	slices.Sort(problems)
	problems = slices.Compact(problems)
	return &SchemaError{Definition: definition, Problems: problems[:min(len(problems), maxProblems)]}
}

// admitted gives the new definition as it would be in the place of the present
// one, if the API server's own validation lets it.
func admitted(ctx context.Context, old, updated *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	// The API server keeps the status, and adds the version that is stored now.
	candidate := old.DeepCopy()
	candidate.Spec = *updated.Spec.DeepCopy()
	for _, version := range candidate.Spec.Versions {
		if version.Storage && !slices.Contains(candidate.Status.StoredVersions, version.Name) {
			candidate.Status.StoredVersions = append(candidate.Status.StoredVersions, version.Name)
		}
	}
	if without := versionsWithoutSchema(candidate); len(without) > 0 {
		return nil, newSchemaError(old.Name, without...)
	}
	from, err := internal(old)
	if err != nil {
		return nil, newSchemaError(old.Name, err.Error())
	}
	to, err := internal(candidate)
	if err != nil {
		return nil, newSchemaError(old.Name, err.Error())
	}
	errs := validation.ValidateCustomResourceDefinitionUpdate(ctx, to, from)
	if len(errs) == 0 {
		return candidate, nil
	}
	problems := make([]string, len(errs))
	for i, e := range errs {
		problems[i] = invalid(e).String()
	}
	return nil, newSchemaError(old.Name, problems...)
}

// versionsWithoutSchema are allowed to definitions that had some before there
// had to be one.
func versionsWithoutSchema(crd *apiextensionsv1.CustomResourceDefinition) (problems []string) {
	for _, version := range crd.Spec.Versions {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			problems = append(problems, fmt.Sprintf("version %s: %v", version.Name, errNoSchema))
		}
	}
	return problems
}

// internal is the form in which the API server validates a definition.
func internal(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	crd = crd.DeepCopy()
	// An update has to name the state that it is of; here it is what is compared.
	crd.ResourceVersion = cmp.Or(crd.ResourceVersion, "1")
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	converted := &apiextensions.CustomResourceDefinition{}
	return converted, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, converted, nil)
}
