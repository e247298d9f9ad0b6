package applier

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// ConflictError says that objects of the bundle exist already and belong to
// somebody else. Nothing was written.
type ConflictError struct {
	// Claimant is the extension that wants them.
	Claimant Extension

	// Conflicts is sorted by object and never empty.
	Conflicts []Conflict
}

// Conflict is one object that cannot be taken over.
type Conflict struct {
	Object object.Key

	// Holder says to whom the object belongs, as far as it tells.
	Holder Holder
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

// Extension is the name of the ClusterExtension to which all of the objects belong;
// empty if there is no such one.
func (e *ConflictError) Extension() string {
	first := e.Conflicts[0].Holder
	for _, conflict := range e.Conflicts {
		if conflict.Holder.Kind != ownerKind || conflict.Holder.Name != first.Name {
			return ""
		}
	}
	return first.Name
}

// Summary says in one short line whose the first of the objects and all others of
// the same holder are, what the ways out are, and who else there is.
func (e *ConflictError) Summary() string {
	holder := e.Conflicts[0].Holder
	var objects, others []string
	for _, conflict := range e.Conflicts {
		if name := conflict.Holder.String(); name != holder.String() {
			others = append(others, name)
			continue
		}
		objects = append(objects, conflict.Object.String())
	}
	verbs := "exists already and belongs"
	if len(objects) > 1 {
		verbs = "exist already and belong"
	}
	text := fmt.Sprintf("%s %s to %s: %s", excerpt.Of(objects, maxListed), verbs, holder, holder.wayOut(e.Claimant))
	if slices.Sort(others); len(others) > 0 {
		text += "; other objects belong to " + excerpt.Of(slices.Compact(others), maxListed)
	}
	return text
}

// maxListed bounds the objects that a summary names, in bytes.
const maxListed = 200

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

// Summary names the first of the kinds, and what to do.
func (e *UnknownKindsError) Summary() string {
	return fmt.Sprintf("the cluster does not serve kinds of the bundle: %s: install what provides them",
		excerpt.Of(e.Kinds, maxListed))
}

// ObjectsError collects what went wrong with single objects of one wave.
type ObjectsError struct {
	// Failures is sorted by object and never empty.
	Failures []ObjectFailure
}

// ObjectFailure is what the API server said about one object.
type ObjectFailure struct {
	Action string
	Object object.Key
	Err    error
}

func (e *ObjectsError) Error() string {
	lines := make([]string, 0, len(e.Failures))
	for _, failure := range e.Failures {
		lines = append(lines, fmt.Sprintf("%s %s: %v", failure.Action, failure.Object, failure.Err))
	}
	return strings.Join(lines, "; ")
}

// Summary has the first failure and how many objects there are besides.
func (e *ObjectsError) Summary() string {
	first := e.Failures[0]
	text := excerpt.Line(fmt.Sprintf("%s %s: %s", first.Action, first.Object, toThePoint(first.Err)), maxFailure)
	if more := len(e.Failures) - 1; more > 0 {
		text += fmt.Sprintf("; so it is with %d more objects", more)
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

// maxFailure bounds what a summary says of one object, in bytes.
const maxFailure = 320

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
	slices.SortFunc(failures, func(a, b ObjectFailure) int { return a.Object.Compare(b.Object) })
	return &ObjectsError{Failures: failures}
}

// RecordTooLargeError says that a release does not fit into the chunks that a
// record may have. Nothing was written.
type RecordTooLargeError struct {
	Release string
	Needed  int
	Allowed int

	// Expands says that the bound is one of bytes before they are compressed. How many
	// it would need is not known.
	Expands bool
}

func (e *RecordTooLargeError) Error() string {
	if e.Expands {
		return fmt.Sprintf("release %q is too large to be recorded: it may have %d bytes with all of its objects", e.Release, e.Allowed)
	}
	return fmt.Sprintf("release %q is too large to be recorded: it needs %d chunks and may have %d", e.Release, e.Needed, e.Allowed)
}
