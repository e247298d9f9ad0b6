package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// ObjectsError collects what went wrong with single objects of one wave.
type ObjectsError struct {
	// Failures is sorted by object and never empty.
	Failures []ObjectFailure
}

// ObjectFailure is what the API server said about one object.
type ObjectFailure struct {
	Action string
	Object object.Key

	// Err can have values of the object in it, see [ObjectFailure.Refusal].
	Err error
}

// Refusal is what went wrong, without values of the object: it gets into statuses, events and
// logs, which more people may read than the object.
func (f ObjectFailure) Refusal() error { return object.WithoutValues(f.Object.GroupKind, f.Err) }

func (e *ObjectsError) Error() string {
	lines := make([]string, 0, len(e.Failures))
	for _, failure := range e.Failures {
		lines = append(lines, fmt.Sprintf("%s %s: %v", failure.Action, failure.Object, failure.Refusal()))
	}
	return strings.Join(lines, "; ")
}

// Summary returns the first failure, and the names of the other objects.
func (e *ObjectsError) Summary() string {
	first := e.Failures[0]
	text := excerpt.Line(fmt.Sprintf("%s %s: %s", first.Action, first.Object, toThePoint(first.Refusal())), maxFailure)
	var others []string
	for _, failure := range e.Failures[1:] {
		others = append(others, failure.Object.String())
	}
	if len(others) > 0 {
		text += "; also failed: " + excerpt.Of(others, maxOthers)
	}
	return text
}

// toThePoint leaves out of a refusal to grant rights who asked, with all groups, so
// that there is room for the rights.
func toThePoint(err error) string {
	const header = "attempting to grant RBAC permissions not currently held:"
	text := err.Error()
	if _, rights, found := strings.Cut(text, header); found {
		return "the ServiceAccount may not grant what it does not hold: " + rights
	}
	return text
}

// maxFailure bounds the text about one object in a summary, and maxOthers the names of all other objects, in bytes.
const (
	maxFailure = 320
	maxOthers  = 200
)

// Unwrap gives the errors of the API server, as [ObjectFailure.Refusal] has them.
func (e *ObjectsError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failures))
	for _, failure := range e.Failures {
		errs = append(errs, failure.Refusal())
	}
	return errs
}

func newObjectsError(failures []ObjectFailure) error {
	if len(failures) == 0 {
		return nil
	}
	slices.SortFunc(failures, func(a, b ObjectFailure) int { return a.Object.Compare(b.Object) })
	return &ObjectsError{Failures: failures}
}
