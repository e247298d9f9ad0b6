package applier

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConflictError says that objects of the bundle exist already and belong to
// somebody else. Nothing was written.
type ConflictError struct {
	// Conflicts is sorted by object and never empty.
	Conflicts []Conflict
}

// Conflict is one object that cannot be taken over.
type Conflict struct {
	Object ObjectKey

	// Owner says to whom the object belongs, as far as it tells.
	Owner string
}

// Error keeps to the sentence of the reference implementation, which scripts
// look for.
func (e *ConflictError) Error() string {
	lines := make([]string, 0, len(e.Conflicts))
	for _, conflict := range e.Conflicts {
		lines = append(lines, fmt.Sprintf("%s %q already exists in namespace '%s' and cannot be managed by operator-controller",
			conflict.Object.Kind, conflict.Object.Name, conflict.Object.Namespace))
	}
	return strings.Join(lines, "; ")
}

// UnknownKindsError says that the cluster does not serve kinds of the bundle.
// An operation that fails with nothing else has written nothing; a repair has put
// back the objects of other kinds.
type UnknownKindsError struct {
	// Kinds is sorted and never empty.
	Kinds []string

	missing []error
}

func newUnknownKindsError(kinds map[schema.GroupVersionKind]struct{}) *UnknownKindsError {
	names, missing := make([]string, 0, len(kinds)), make([]error, 0, len(kinds))
	for kind := range maps.Keys(kinds) {
		names = append(names, fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion()))
		missing = append(missing, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}})
	}
	slices.Sort(names)
	return &UnknownKindsError{Kinds: names, missing: missing}
}

func (e *UnknownKindsError) Error() string {
	return "the cluster does not serve kinds of the bundle: " + strings.Join(e.Kinds, ", ") + "; install what brings them"
}

// Unwrap gives a [*meta.NoKindMatchError] for each kind, in no order.
func (e *UnknownKindsError) Unwrap() []error { return e.missing }

// ObjectsError collects what went wrong with single objects of one wave.
type ObjectsError struct {
	// Failures is sorted by object and never empty.
	Failures []ObjectFailure
}

// ObjectFailure is what the API server said about one object.
type ObjectFailure struct {
	Action string
	Object ObjectKey
	Err    error
}

func (e *ObjectsError) Error() string {
	lines := make([]string, 0, len(e.Failures))
	for _, failure := range e.Failures {
		lines = append(lines, fmt.Sprintf("%s %s: %v", failure.Action, failure.Object, failure.Err))
	}
	return strings.Join(lines, "; ")
}

// Unwrap gives the errors of the API server.
func (e *ObjectsError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failures))
	for _, failure := range e.Failures {
		errs = append(errs, failure.Err)
	}
	return errs
}

func newObjectsError(failures []ObjectFailure) error {
	if len(failures) == 0 {
		return nil
	}
	slices.SortFunc(failures, func(a, b ObjectFailure) int { return compareKeys(a.Object, b.Object) })
	return &ObjectsError{Failures: failures}
}

// RecordTooLargeError says that a release does not fit into the chunks that a
// record may have. Nothing was written.
type RecordTooLargeError struct {
	Release string
	Needed  int
	Allowed int
}

func (e *RecordTooLargeError) Error() string {
	return fmt.Sprintf("release %q is too large to be recorded: it needs %d chunks and may have %d", e.Release, e.Needed, e.Allowed)
}
