package resolve

import (
	"fmt"
	"strings"
)

// maxListed bounds the versions and bundles that an explanation names.
const maxListed = 10

// Explanation is one line for people on what stood in the way, bundle by
// bundle, where the message of [Error.Error] does not tell: which rules left
// nothing over, what can be reached instead, what the catalogs disagree about.
// It is empty for the other kinds.
func (e *Error) Explanation() string {
	switch e.Kind {
	case NoBundle:
		return e.explainNone()
	case Ambiguous:
		return e.explainTie()
	case Unreadable, Unsupported, BadVersion, InvalidInstalled:
	}
	return ""
}

func (e *Error) explainNone() string {
	if len(e.Catalogs) == 0 {
		return fmt.Sprintf("no catalog has package %q", e.Package)
	}
	if len(e.LeftOut) == 0 {
		return fmt.Sprintf("package %q has no bundles", e.Package)
	}
	counts := map[Reason]int{}
	for _, left := range e.LeftOut {
		counts[left.Reason]++
	}
	var parts []string
	for _, rule := range []struct {
		reason Reason
		text   string
	}{
		{NotInChannel, fmt.Sprintf("not in channels %v", e.Channels)},
		{InvalidVersion, "without a valid version"},
		{OutsideRange, fmt.Sprintf("not in range %q", e.Range)},
		{NoUpgradeEdge, "without an upgrade edge from what is installed"},
	} {
		if count := counts[rule.reason]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, rule.text))
		}
	}
	text := fmt.Sprintf("of %d bundles, %s", len(e.LeftOut), strings.Join(parts, ", "))
	if len(e.Reachable) > 0 {
		text += "; upgrades lead to " + listed(e.Reachable)
	}
	return text
}

func (e *Error) explainTie() string {
	var offers []string
	for _, left := range e.LeftOut {
		if left.Reason == Tied {
			offers = append(offers, fmt.Sprintf("%q in catalog %q", left.Name, left.Catalog))
		}
	}
	return "the same priority have " + listed(offers)
}

func listed(items []string) string {
	if more := len(items) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:maxListed], ", "), more)
	}
	return strings.Join(items, ", ")
}
