package storeddata

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
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
	lanes    map[string]func() lane // by the version that an object was read at
}

// lane is what happens to objects that were read at one version.
type lane struct {
	// before is prepared if something is found after, which mostly is not so.
	before func() passage
	after  passage
	// unknown, if set, says why it cannot be known what happens after.
	unknown error
}

func newLane(before, after definition, read string) lane {
	l := lane{before: sync.OnceValue(func() passage {
		// What of the present definition cannot be understood forbids nothing.
		p, _ := before.passage(read, before.storage)
		return p
	})}
	l.after, l.unknown = after.passage(read, before.storage)
	return l
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
	before, after := newDefinition(old), newDefinition(updated)
	v := &Validator{resource: Resource(old), lanes: map[string]func() lane{}}
	for _, version := range old.Spec.Versions {
		if version.Served {
			v.lanes[version.Name] = sync.OnceValue(func() lane { return newLane(before, after, version.Name) })
		}
	}
	return v, nil
}

// Resource returns the first of [Resources].
func Resource(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionResource {
	return Resources(crd)[0]
}

// Resources returns the versions in which all objects of a CRD can be read, the best one first: the storage version,
// then the other versions in which objects may be stored. The API server converts nothing if all objects are stored
// in the version in which they are read, so one of these may work while the conversion webhook does not answer. If
// none of them is served, it returns the first version that is.
func Resources(crd *apiextensionsv1.CustomResourceDefinition) []schema.GroupVersionResource {
	at := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural}
	}
	var served string
	var storage, stored []schema.GroupVersionResource
	for _, version := range crd.Spec.Versions {
		switch {
		case !version.Served:
			continue
		case version.Storage:
			storage = append(storage, at(version.Name))
		case slices.Contains(crd.Status.StoredVersions, version.Name):
			stored = append(stored, at(version.Name))
		}
		served = cmp.Or(served, version.Name)
	}
	if found := slices.Concat(storage, stored); len(found) > 0 {
		return found
	}
	return []schema.GroupVersionResource{at(served)}
}

// Resource returns the resource that a [Lister] should read first; see [Resources].
func (v *Validator) Resource() schema.GroupVersionResource { return v.resource }

// Check gives what would be wrong with the object under the new definition and is
// not wrong now, ordered by path. The object has the types that
// [unstructured.UnmarshalJSON] gives, and is not changed. The context ends rules
// that are being evaluated; what Check gives then means nothing.
func (v *Validator) Check(ctx context.Context, object *unstructured.Unstructured) []Problem {
	version := object.GroupVersionKind().Version
	newLane, ok := v.lanes[version]
	if !ok {
		return unknown(fmt.Sprintf("version %q is not served now", version))
	}
	l := newLane()
	if l.unknown != nil {
		return unknown(l.unknown.Error())
	}
	content := contentOf(object)
	after := l.after.take(content)
	before := sync.OnceValue(func() outcome { return l.before().take(content) })

	var problems []Problem
	for _, path := range newlyRemoved(after.removed, func() []string { return before().removed }) {
		problems = append(problems, removed(path))
	}
	errs := newErrors(l.after.check(ctx, after), func() field.ErrorList { return l.before().check(ctx, before()) })
	if !blocksRules(errs) {
		broken := func() field.ErrorList { return l.before().rules(ctx, before()) }
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
