package policyfile

import (
	"cmp"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxMessageBytes is the longest message, in bytes.
const maxMessageBytes = 1024

// Severity says how bad a problem is.
type Severity string

// The severities, worst first.
const (
	// Error is what the API server would refuse, or what makes that nothing is accepted.
	Error Severity = "error"
	// Warning is what works, but maybe not as its author thinks.
	Warning Severity = "warning"
	// Note is what is fine if it is meant.
	Note Severity = "note"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	// Object is the kind and the name of the object; empty for the file as a whole.
	Object   string   `json:"object,omitempty"`
	Severity Severity `json:"severity"`
	// Message is a single line.
	Message string `json:"message"`
}

// String is the problem as a single line, the object first.
func (p Problem) String() string {
	text := string(p.Severity) + ": " + p.Message
	if p.Object != "" {
		text = p.Object + ": " + text
	}
	return text
}

func newProblem(object string, severity Severity, message string) Problem {
	return Problem{Object: object, Severity: severity, Message: excerpt.Line(message, maxMessageBytes)}
}

// compareProblems sorts by object, and then by severity, as these are written.
func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message))
}
