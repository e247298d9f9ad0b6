package catalogcheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const (
	// maxProblems is more than anybody reads, and bounds what hostile content costs.
	maxProblems = 10_000
	// maxMessage is the longest message in bytes.
	maxMessage = 1024
	// maxListed is how many names a message lists.
	maxListed = 10
)

// Severity says how bad a problem is.
type Severity string

// The severities, worst first.
const (
	// Error is what makes something of the catalog unusable or cannot be meant.
	Error Severity = "error"
	// Warning is what works, but maybe not as its author thinks.
	Warning Severity = "warning"
	// Note is what most catalogs have, and what is fine if it is meant.
	Note Severity = "note"
)

// Problem is one thing that is wrong with a catalog.
type Problem struct {
	// File is the path of the file within the catalog. It is empty for a problem
	// of the catalog as a whole.
	File string `json:"file,omitempty"`
	// Object is the place of the object or document in the file, counted from
	// one; zero for a problem of the file as a whole.
	Object int `json:"object,omitempty"`
	// Schema, Package and Name identify the object; each may be empty.
	Schema  string `json:"schema,omitempty"`
	Package string `json:"package,omitempty"`
	Name    string `json:"name,omitempty"`

	Severity Severity `json:"severity"`
	// Message is a single line that does not repeat where the problem is.
	Message string `json:"message"`
}

// String returns the problem as a single line, the place first.
func (p Problem) String() string {
	text := string(p.Severity) + ": " + p.Message
	if p.Object > 0 {
		object := fbc.Object{Position: p.Object, Schema: p.Schema, Package: p.Package, Name: p.Name}
		text = object.String() + ": " + text
	}
	if p.File != "" {
		text = excerpt.Line(p.File, maxMessage) + ": " + text
	}
	return text
}

func compareProblems(a, b Problem) int {
	return cmp.Or(
		cmp.Compare(a.File, b.File),
		cmp.Compare(a.Object, b.Object),
		cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(a.Message, b.Message),
	)
}

// report collects problems.
type report struct {
	problems []Problem
	// omitted counts, by severity, what was too much.
	omitted map[Severity]int
}

func (r *report) errorf(at fbc.FileObject, format string, args ...any) {
	r.add(Error, at, fmt.Sprintf(format, args...))
}

func (r *report) warnf(at fbc.FileObject, format string, args ...any) {
	r.add(Warning, at, fmt.Sprintf(format, args...))
}

func (r *report) notef(at fbc.FileObject, format string, args ...any) {
	r.add(Note, at, fmt.Sprintf(format, args...))
}

func (r *report) add(severity Severity, at fbc.FileObject, message string) {
	if len(r.problems) >= maxProblems {
		r.omitted[severity]++
		return
	}
	r.problems = append(r.problems, Problem{
		File: at.Path, Object: at.Position, Schema: at.Schema, Package: at.Package, Name: at.Name,
		Severity: severity, Message: excerpt.Line(message, maxMessage),
	})
}

// sorted returns the problems in their order, and what was left out of them.
func (r *report) sorted() []Problem {
	slices.SortFunc(r.problems, compareProblems)
	for _, severity := range []Severity{Error, Warning, Note} {
		if n := r.omitted[severity]; n > 0 {
			r.problems = append(r.problems, Problem{
				Severity: severity, Message: fmt.Sprintf("there is more: %d of this severity are not listed", n),
			})
		}
	}
	return r.problems
}

// list returns names as a message shows them, in their order.
func list(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i == maxListed {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(excerpt.Quote(name))
	}
	return b.String()
}
