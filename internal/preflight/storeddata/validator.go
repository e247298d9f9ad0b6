package storeddata

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validator checks objects of one definition against a new version of it. It may
// be used by many at a time.
type Validator struct {
	resource schema.GroupVersionResource
	lanes    map[string]lane // by the version that an object was read at
}

// lane is what happens to objects that were read at one version.
type lane struct {
	before, after passage
	// unknown, if set, says why it cannot be known what happens after.
	unknown string
}

// New takes the definition that the cluster has, as it was read, and the one that
// would replace it. The error is a [SchemaError] if the new one has a version
// without a schema, or a schema or a rule that the API server would not take. Of
// the present one only what can be understood is used: it has been taken.
func New(ctx context.Context, old, updated *apiextensionsv1.CustomResourceDefinition) (*Validator, error) {
	updated, err := admitted(ctx, old, updated)
	if err != nil {
		return nil, err
	}
	after, err := compile(updated)
	if err != nil {
		return nil, newSchemaError(old.Name, err.Error())
	}
	before := compileKnown(old)
	v := &Validator{resource: Resource(old), lanes: map[string]lane{}}
	for _, version := range old.Spec.Versions {
		if !version.Served {
			continue
		}
		l := lane{}
		l.before, _ = before.passage(version.Name, before.storage)
		l.after, l.unknown = after.passage(version.Name, before.storage)
		v.lanes[version.Name] = l
	}
	return v, nil
}

// Resource is where to read all that objects of a definition have stored: at
// the version that is stored if it is served, as nothing is converted then, and
// else at the first that is.
func Resource(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionResource {
	resource := schema.GroupVersionResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	for _, version := range crd.Spec.Versions {
		if version.Served && (version.Storage || resource.Version == "") {
			resource.Version = version.Name
		}
	}
	return resource
}

// Resource is what a [Lister] should read; see [Resource].
func (v *Validator) Resource() schema.GroupVersionResource { return v.resource }

// Check gives what would be wrong with the object under the new definition and is
// not wrong now, ordered by path. The object has the types that
// [unstructured.UnmarshalJSON] gives, and is not changed. The context ends rules
// that are being evaluated; what Check gives then means nothing.
func (v *Validator) Check(ctx context.Context, object *unstructured.Unstructured) []Problem {
	version := object.GroupVersionKind().Version
	l, ok := v.lanes[version]
	switch {
	case !ok:
		return unknown(fmt.Sprintf("version %q is not served now", version))
	case l.unknown != "":
		return unknown(l.unknown)
	}
	content := contentOf(object)
	after := l.after.write(content)
	before := sync.OnceValue(func() outcome { return l.before.write(content) })

	var problems []Problem
	for _, path := range newlyRemoved(after.removed, func() []string { return before().removed }) {
		problems = append(problems, removed(path))
	}
	errs := newErrors(after.errs, func() field.ErrorList { return before().errs })
	if !blocksRules(errs) {
		broken := func() field.ErrorList { return l.before.rules(ctx, before()) }
		errs = append(errs, newErrors(l.after.rules(ctx, after), broken)...)
	}
	for _, e := range errs {
		problems = append(problems, invalid(e))
	}
	return sorted(problems)
}

// contentOf is the object without the part of its metadata that is large and that
// no schema speaks of. It shares the rest with the object.
func contentOf(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		content["metadata"] = metadata
	}
	return content
}
