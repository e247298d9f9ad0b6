package preflight

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
)

// Verdict is what an upgrade does to definitions and to what is stored.
type Verdict struct {
	// Findings are sorted. None of them depends on data any more.
	Findings []crdupgrade.Finding

	// Offenders are lines about objects that the upgrade would break, and about
	// what could not be looked at, by definition.
	Offenders []string

	// Unread says that the ServiceAccount may not list some that matter.
	Unread bool
}

// Blocking are the findings that stop an upgrade.
func (v Verdict) Blocking() []crdupgrade.Finding { return v.only(crdupgrade.Blocks) }

// Notes are the findings that stop nothing.
func (v Verdict) Notes() []crdupgrade.Finding { return v.only(crdupgrade.Note) }

func (v Verdict) only(kind crdupgrade.Kind) []crdupgrade.Finding {
	var some []crdupgrade.Finding
	for _, finding := range v.Findings {
		if finding.Kind == kind {
			some = append(some, finding)
		}
	}
	return some
}

// Err is an [*UnsafeError] if the upgrade must not go on.
func (v Verdict) Err() error {
	if blocking := v.Blocking(); len(blocking) > 0 {
		return &UnsafeError{Findings: blocking, Offenders: v.Offenders, Unread: v.Unread}
	}
	return nil
}

func (v *Verdict) add(findings []crdupgrade.Finding, s storedObjects) {
	v.Findings = append(v.Findings, findings...)
	if slices.ContainsFunc(findings, func(f crdupgrade.Finding) bool { return f.Kind == crdupgrade.Blocks }) {
		v.Offenders = append(v.Offenders, s.lines()...)
		v.Unread = v.Unread || s.isUnread()
	}
}

// UnsafeError says that an upgrade would break definitions or stored objects.
type UnsafeError struct {
	Findings  []crdupgrade.Finding
	Offenders []string

	// Unread says that other rights of the ServiceAccount could change that.
	Unread bool
}

// Error has a line for each finding in the form of the reference implementation,
// then the objects, then what to do. It has at most 24 KiB.
func (e *UnsafeError) Error() string {
	lines := append([]string{crdupgrade.Message(e.Findings)}, e.Offenders...)
	for _, finding := range e.Findings {
		advice := fmt.Sprintf("%s: %s", finding.Check, finding.Advice)
		if !slices.Contains(lines, advice) {
			lines = append(lines, advice)
		}
	}
	return joined(lines, maxMessage)
}

const (
	// maxMessage leaves room in a condition for what is said before.
	maxMessage = 24 << 10

	// maxLine is more than a name and a problem take.
	maxLine = 1 << 10
)

// joined puts as many lines below each other as fit.
func joined(lines []string, limit int) string {
	var text strings.Builder
	for i, line := range lines {
		if text.Len()+len(line)+1 > limit {
			fmt.Fprintf(&text, "\n... and %d more lines", len(lines)-i)
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(line)
	}
	return text.String()
}

// storedObjects are the stored objects of a definition, as far as they were read.
type storedObjects struct {
	definition string
	report     storeddata.Report
}

func (s storedObjects) isUnread() bool {
	return slices.ContainsFunc(s.report.Gaps, func(gap storeddata.Gap) bool { return gap.Reason == storeddata.Forbidden })
}

// judge decides about the findings that depend on data: those that no object
// breaks are notes. When an object breaks something that no finding is about, not
// even one that was excepted, or not all is known, all of them block.
func (s storedObjects) judge(findings []crdupgrade.Finding) []crdupgrade.Finding {
	broken := s.broken(findings)
	judged := slices.Clone(findings)
	for i, finding := range judged {
		switch {
		case finding.Kind != crdupgrade.NeedsData:
		case broken(finding):
			judged[i].Kind = crdupgrade.Blocks
		default:
			judged[i].Kind = crdupgrade.Note
			judged[i].Detail += fmt.Sprintf(" (none of %d stored objects is affected)", s.report.Objects)
		}
	}
	return judged
}

func (s storedObjects) broken(findings []crdupgrade.Finding) func(crdupgrade.Finding) bool {
	always := func(crdupgrade.Finding) bool { return true }
	switch {
	case !s.report.Complete():
		return always
	case s.report.Affected == 0:
		return func(crdupgrade.Finding) bool { return false }
	case s.report.Affected > len(s.report.Offenders):
		return always
	}
	var problems []storeddata.Problem
	for _, offender := range s.report.Offenders {
		if offender.Total > len(offender.Problems) {
			return always
		}
		problems = append(problems, offender.Problems...)
	}
	for _, problem := range problems {
		explains := func(f crdupgrade.Finding) bool { return concerns(f, problem) }
		if !slices.ContainsFunc(findings, explains) {
			return always
		}
	}
	return func(f crdupgrade.Finding) bool {
		return slices.ContainsFunc(problems, func(p storeddata.Problem) bool { return concerns(f, p) })
	}
}

// concerns says whether a finding and a problem can be about the same field: one
// of them may be about what the other one is in.
func concerns(f crdupgrade.Finding, p storeddata.Problem) bool {
	inSchema, inObject := segments(f.Path), segments(p.Path)
	shorter := min(len(inSchema), len(inObject))
	return slices.Equal(inSchema[:shorter], inObject[:shorter])
}

// notAField are the parts of a path that say where in a list or map something is.
var notAField = regexp.MustCompile(`\[[^\]]*\]`)

// segments are the names of fields that a path has in a schema (^.spec.list.items)
// and in an object (spec.list[2]) alike.
func segments(path string) []string {
	var names []string
	for part := range strings.SplitSeq(notAField.ReplaceAllString(path, ""), ".") {
		switch part {
		case "", "^", "items", "additionalProperties":
		default:
			names = append(names, part)
		}
	}
	return names
}

// lines are about the objects that break, and what is not known about others.
func (s storedObjects) lines() []string {
	var lines []string
	add := func(format string, args ...any) {
		line := fmt.Sprintf("stored objects of %q: ", s.definition) + fmt.Sprintf(format, args...)
		lines = append(lines, excerpt.Cut(line, maxLine))
	}
	for _, offender := range s.report.Offenders {
		add("%s: %s", nameOf(offender), problemsOf(offender))
	}
	if more := s.report.Affected - len(s.report.Offenders); more > 0 {
		add("%d more are affected, of %d", more, s.report.Objects)
	}
	for _, gap := range s.report.Gaps {
		add("they could not all be checked: %s", gap.Detail)
	}
	return lines
}

func nameOf(offender storeddata.Offender) string {
	if offender.Namespace == "" {
		return offender.Name
	}
	return offender.Namespace + "/" + offender.Name
}

func problemsOf(offender storeddata.Offender) string {
	texts := make([]string, 0, len(offender.Problems))
	for _, problem := range offender.Problems {
		texts = append(texts, problem.String())
	}
	text := strings.Join(texts, ", ")
	if more := offender.Total - len(offender.Problems); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
