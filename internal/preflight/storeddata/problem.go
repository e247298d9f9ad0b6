package storeddata

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxText is the most bytes that a path or a detail has. A rule may have a
// message, and a pattern a length, of any size.
const maxText = 300

// Kind says what would happen to an object.
type Kind string

const (
	// Invalid says that the API server would refuse to write the object.
	Invalid Kind = "Invalid"
	// Removed says that the object would lose a field.
	Removed Kind = "Removed"
	// Deleted says that the object would be deleted.
	Deleted Kind = "Deleted"
	// Unknown says that it cannot be known what the object would be.
	Unknown Kind = "Unknown"
)

// Problem is one thing that would happen to an object.
type Problem struct {
	Kind Kind
	// Path of the field, such as spec.ports[2].name; empty if it is the object
	// as a whole.
	Path string
	// Detail is one line. For an invalid field it is in the words of the API
	// server without the value.
	Detail string
}

// String is the problem in one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Detail
	}
	return p.Path + ": " + p.Detail
}

// invalid puts an error of the API server in terms of a problem.
func invalid(e *field.Error) Problem {
	withoutValue := *e
	withoutValue.BadValue = field.OmitValueType{}
	if e.Type == field.ErrorTypeTypeInvalid {
		withoutValue.Detail = withoutText(e.Detail)
	}
	return Problem{Kind: Invalid, Path: excerpt.Line(fieldOf(e), maxText), Detail: excerpt.Line(withoutValue.ErrorBody(), maxText)}
}

// withoutText drops what follows the type that a value should have, unless it is
// the type that it has: for text of the wrong format it is the text.
func withoutText(detail string) string {
	wanted, found, _ := strings.Cut(detail, ": ")
	switch found {
	case `"array"`, `"boolean"`, `"integer"`, `"null"`, `"number"`, `"object"`, `"string"`:
		return detail
	default:
		return wanted
	}
}

// fieldOf is the path of an error; errors about whole objects have none.
func fieldOf(e *field.Error) string {
	if e.Field == (*field.Path)(nil).String() {
		return ""
	}
	return e.Field
}

func removed(path string) Problem {
	return Problem{Kind: Removed, Path: excerpt.Line(path, maxText), Detail: "field would be removed"}
}

func unknown(why string) []Problem {
	return []Problem{{Kind: Unknown, Detail: excerpt.Line(why, maxText)}}
}

// sorted orders problems by field, and drops what is said twice.
func sorted(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Detail, b.Detail))
	})
	return slices.Compact(problems)
}
