package storeddata

import (
	"fmt"
	"math"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkScale says whether the fields that the scale subresource is made from have
// values that it can hold. The API server asks this of every object that it
// writes.
func checkScale(object map[string]any, scale *apiextensionsv1.CustomResourceSubresourceScale) field.ErrorList {
	if scale == nil {
		return nil
	}
	var errs field.ErrorList
	for _, path := range []string{scale.SpecReplicasPath, scale.StatusReplicasPath} {
		replicas, _, err := unstructured.NestedInt64(object, keysOfPath(path)...)
		switch at := field.NewPath(path); {
		case err != nil:
			errs = append(errs, field.Invalid(at, replicas, err.Error()))
		case replicas < 0:
			errs = append(errs, field.Invalid(at, replicas, "should be a non-negative integer"))
		case replicas > math.MaxInt32:
			errs = append(errs, field.Invalid(at, replicas, fmt.Sprintf("should be less than or equal to %d", math.MaxInt32)))
		}
	}
	if scale.LabelSelectorPath == nil {
		return errs
	}
	if selector, _, err := unstructured.NestedString(object, keysOfPath(*scale.LabelSelectorPath)...); err != nil {
		errs = append(errs, field.Invalid(field.NewPath(*scale.LabelSelectorPath), selector, err.Error()))
	}
	return errs
}

// keysOfPath splits a path such as .spec.replicas.
func keysOfPath(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}
