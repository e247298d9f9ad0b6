package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Violation is one thing wrong with the content of a bundle.
type Violation struct {
	// File in the bundle, such as "manifests/csv.yaml"; empty when it is not
	// about one file.
	File string

	// Path of the field inside the object, such as
	// "spec.install.spec.deployments[0].name"; empty when it is about the whole.
	Path string

	// Message says what is wrong, operands quoted, in one line.
	Message string
}

// String is "file: path: message", without the parts that are not known.
func (v Violation) String() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{v.File, v.Path, v.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// InvalidError lists everything that is wrong with the content of a bundle.
// Content is addressed by digest: only another bundle can mend it.
type InvalidError struct {
	// Violations is never empty. Order: file by file, then as the rules ran.
	Violations []Violation
}

func (e *InvalidError) Error() string {
	messages := make([]string, len(e.Violations))
	for i, violation := range e.Violations {
		messages[i] = violation.String()
	}
	return "invalid bundle: " + strings.Join(messages, "; ")
}

// UnsupportedError says that a bundle needs a feature that is not there. The
// bundle may be fine for others.
type UnsupportedError struct {
	// Reasons is never empty, one clause each.
	Reasons []string

	// ByName says that another name of the extension would do.
	ByName bool
}

func (e *UnsupportedError) Error() string {
	return "unsupported bundle: " + strings.Join(e.Reasons, "; ")
}

// ConfigError lists everything that is wrong with the configuration that the
// user gave for a bundle.
type ConfigError struct {
	// Problems is never empty, sorted.
	Problems []string
}

// Error is the one message of this package with several lines, one for each
// problem, as users know it.
func (e *ConfigError) Error() string {
	if len(e.Problems) == 1 {
		return "invalid configuration: " + e.Problems[0]
	}
	return "invalid configuration: multiple errors found:\n  - " + strings.Join(e.Problems, "\n  - ")
}

func newConfigError(problems ...string) *ConfigError {
	slices.Sort(problems)
	return &ConfigError{Problems: slices.Compact(problems)}
}

// findings collects what is wrong, so that a bundle is judged as a whole.
type findings struct {
	violations  []Violation
	unsupported []string
}

func (f *findings) add(file, path, format string, args ...any) {
	f.violations = append(f.violations, Violation{File: file, Path: path, Message: excerpt.Fold(fmt.Sprintf(format, args...))})
}

func (f *findings) unsupportedf(format string, args ...any) {
	f.unsupported = append(f.unsupported, excerpt.Fold(fmt.Sprintf(format, args...)))
}

// err is nil when nothing was found. What is invalid outranks what is merely
// unsupported.
func (f *findings) err() error {
	switch {
	case len(f.violations) > 0:
		slices.SortStableFunc(f.violations, func(a, b Violation) int { return cmp.Compare(a.File, b.File) })
		return &InvalidError{Violations: slices.Compact(f.violations)}
	case len(f.unsupported) > 0:
		return &UnsupportedError{Reasons: f.unsupported}
	}
	return nil
}
