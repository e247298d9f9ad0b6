package storeddata

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// outcome is an object as the API server has it before it is validated.
type outcome struct {
	object  map[string]any
	removed []string // paths of fields, sorted
	errs    field.ErrorList
}

// passage is the way of an object through the versions of one definition. The
// zero passage leaves all as it is.
type passage struct {
	apiVersion string
	// decoded is the version that the object is stored at, if it is another than
	// written. It removes fields first, and has defaults of its own.
	decoded *version
	// written is the version at which somebody writes the object.
	written *version
	// stored is the version that it is converted to, if it is another than
	// written and only the name of the version changes. It removes fields last.
	stored *version
}

// take does to the object what the API server does before it validates it.
func (p passage) take(content map[string]any) outcome {
	if p.written == nil {
		return outcome{}
	}
	o := outcome{object: runtime.DeepCopyJSON(content)}
	o.object["apiVersion"] = p.apiVersion
	if p.stored != nil {
		o.removed = p.stored.prune(runtime.DeepCopyJSON(content))
	}
	if p.decoded != nil {
		o.removed = append(o.removed, p.decoded.prune(o.object)...)
	}
	o.removed = append(o.removed, p.written.prune(o.object)...)
	if p.decoded != nil {
		paths, _ := p.decoded.fill(o.object) // what fails has no say in writing
		o.removed = append(o.removed, paths...)
		p.written.prune(o.object) // defaults of the other version: nothing is lost
	}
	paths, errs := p.written.fill(o.object)
	o.removed = append(o.removed, paths...)
	o.errs = errs
	slices.Sort(o.removed)
	o.removed = slices.Compact(o.removed)
	return o
}

// check holds all but the rules of the schema against what take gave.
func (p passage) check(ctx context.Context, o outcome) field.ErrorList {
	if p.written == nil {
		return nil
	}
	return slices.Concat(o.errs, p.written.check(ctx, o.object))
}

// rules holds the rules of the schema against what take gave.
func (p passage) rules(ctx context.Context, o outcome) field.ErrorList {
	if p.written == nil {
		return nil
	}
	return p.written.obey(ctx, o.object)
}
