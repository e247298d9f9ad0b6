package object

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// ConflictError says that objects of the bundle exist already and belong to
// somebody else. Nothing was written.
type ConflictError struct {
	// Claimant is the extension that wants them.
	Claimant Owner

	// Conflicts is sorted by object and never empty.
	Conflicts []Conflict
}

// Conflict is one object that cannot be taken over.
type Conflict struct {
	Object Key

	// Holder says to whom the object belongs, as far as it tells.
	Holder Holder

	// Another is the API service that is wanted, where the object is one of the same group; see
	// [GroupConflicts]. It is zero where the object itself is wanted.
	Another Key
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
		if conflict.Holder.Kind != OwnerKind || conflict.Holder.Name != first.Name {
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
	var haveDefinition bool
	for _, conflict := range e.Conflicts {
		if name := conflict.Holder.String(); name != holder.String() {
			others = append(others, name)
			continue
		}
		objects = append(objects, conflict.Object.String())
		holder.Kept = holder.Kept && conflict.Holder.Kept
		haveDefinition = haveDefinition || conflict.Object.GroupKind == DefinitionKind
	}
	verbs := "exists already and belongs"
	if len(objects) > 1 {
		verbs = "exist already and belong"
	}
	text := fmt.Sprintf("%s %s to %s: ", excerpt.Of(objects, maxListed), verbs, holder)
	if another := e.Conflicts[0].Another; another != (Key{}) {
		text += fmt.Sprintf("another version of its group is wanted, %s: ", another)
	}
	text += holder.wayOut(e.Claimant, haveDefinition)
	if slices.Sort(others); len(others) > 0 {
		text += "; other objects belong to " + excerpt.Of(slices.Compact(others), maxListed)
	}
	return text
}

// maxListed bounds the objects that a summary names, in bytes.
const maxListed = 200
