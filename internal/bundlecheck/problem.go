package bundlecheck

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxMessage is the longest message, and the longest path, in bytes.
const maxMessage = 1024

// Severity is the severity of a problem.
type Severity string

// The severities, worst first.
const (
	// Error is a problem that prevents the installation of the bundle, or a part of it from working.
	Error Severity = "error"
	// Warning is a problem of a bundle that can be installed.
	Warning Severity = "warning"
)

// Problem is one thing that is wrong with a bundle.
type Problem struct {
	// File is the path of the file within the bundle. It is empty for a problem
	// that is in no one file.
	File string `json:"file,omitempty"`
	// Path is that of the field in the object, or of the object in the file;
	// empty for a problem of the whole.
	Path string `json:"path,omitempty"`

	Severity Severity `json:"severity"`
	// Message is a single line that does not repeat where the problem is.
	Message string `json:"message"`
}

// String returns the problem as a single line, the place first.
func (p Problem) String() string { return p.Place(string(p.Severity) + ": " + p.Message) }

// Place puts the place of the problem before a text.
func (p Problem) Place(text string) string {
	for _, place := range []string{p.Path, p.File} {
		if place != "" {
			text = place + ": " + text
		}
	}
	return text
}

// report collects problems.
type report struct {
	problems []Problem
}

func (r *report) errorf(file, path, format string, args ...any) {
	r.add(Error, file, path, fmt.Sprintf(format, args...))
}

func (r *report) warnf(file, path, format string, args ...any) {
	r.add(Warning, file, path, fmt.Sprintf(format, args...))
}

func (r *report) add(severity Severity, file, path, message string) {
	r.problems = append(r.problems, Problem{
		File: excerpt.Line(file, maxMessage), Path: excerpt.Line(path, maxMessage), Severity: severity, Message: excerpt.Line(message, maxMessage),
	})
}

// sorted returns the problems in their order, each once.
func (r *report) sorted() []Problem {
	slices.SortFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(r.problems)
}
