package permission

import (
	"fmt"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const (
	// maxLines keeps a message well below what a condition can hold, in bytes, so
	// that there is room for what is said before and after.
	maxLines = 30 << 10

	// maxLine is more than a rule of one resource and one name takes.
	maxLine = 1 << 10

	missingHeader = "pre-authorization failed: service account requires the following permissions to manage cluster extension:"
)

// MissingError says that a ServiceAccount lacks rights.
type MissingError struct {
	// Rules are sorted and never empty, one for each resource and name.
	Rules []Rule
}

// Error has the lines of the reference implementation, as many as fit into a
// condition, and how many more there are.
func (e *MissingError) Error() string {
	return missingHeader + "\n" + Lines(e.Rules, "which 'kubectl extension bundle rbac' prints")
}

// Lines puts each of the items on an indented line of its own, as many as fit into
// a condition, and then how many more there are and where to read them.
func Lines[T fmt.Stringer](items []T, more string) string {
	lines := make([]string, 0, len(items))
	size := 0
	for i, item := range items {
		line := excerpt.Cut("  "+item.String(), maxLine)
		if size += len(line) + len("\n"); size > maxLines {
			lines = append(lines, fmt.Sprintf("  and %d more, %s", len(items)-i, more))
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Missing are the rights that are needed and not held: none of them is included in
// another one, one rule for each resource and name, sorted.
func Missing(needs Needs, held Held) []Rule {
	return missing(needs, held.authority())
}

func missing(needs Needs, has authority) []Rule {
	return toRules(append(refused(needs.managed(), has), lacking(needs.Escalations, has)...))
}

func refused(access []Rule, has authority) []right {
	var rights []right
	for _, rule := range access {
		rights = append(rights, has.refused(rule)...)
	}
	return rights
}

func lacking(escalations []Escalation, has authority) []right {
	var rights []right
	for _, escalation := range escalations {
		rights = append(rights, escalation.lacking(has)...)
	}
	return rights
}

// toRules leaves out what is included in another right.
func toRules(rights []right) []Rule { return sortedLines(merged(minimal(rights))) }

// Delta are the rights that a new revision needs and the old one did not, in the
// form of [Missing]. Rights to manage more objects of kinds that the old one had, too,
// are not among them: most bundles name their roles after the version, and what is
// said of each upgrade is not read. Rights to grant always are.
func Delta(before, after Needs) []Rule {
	had, managed := coverageOf(before.least()), coverageOf(before.least())
	for _, rule := range before.managed() {
		rule.ResourceNames, rule.Verbs = nil, []string{verbCreate, verbGet, verbPatch, verbDelete}
		managed.add(rule)
	}
	return toRules(append(refused(after.managed(), authority{rules: managed}), lacking(after.Escalations, authority{rules: had})...))
}
