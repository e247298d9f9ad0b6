package resolve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxListed bounds the versions, bundles and rules that an explanation names.
const maxListed = 10

// maxExplanation bounds an explanation, in bytes: it shares a message with more.
const maxExplanation = 700

// Explanation is one line for people on the bundles with a higher version than
// the chosen one: which rules they were left out by. It also tells what the
// chosen bundle itself lacks on the cluster. It is empty if there is nothing to
// tell.
func (r *Resolution) Explanation() string {
	var parts []string
	if len(r.Missing) > 0 {
		parts = append(parts, fmt.Sprintf("%q %s", r.Identity.Name, missingText(r.Missing)))
	}
	if newer := r.newer(); len(newer) > 0 {
		parts = append(parts, "newer but left out: "+listed(ruled(newer)))
		if left := firstDeadEnd(newer); left != nil {
			parts = append(parts, fmt.Sprintf("to have %q all the same, set version to %q", left.Name, left.Version))
		}
	}
	if len(r.Unreadable) > 0 {
		parts = append(parts, fmt.Sprintf("catalogs %v cannot be read and might have one that is not deprecated", r.Unreadable))
	}
	return bounded(parts)
}

// HasNewer reports whether LeftOut contains a bundle with a higher version than the chosen one.
func (r *Resolution) HasNewer() bool { return len(r.newer()) > 0 }

// newer are the bundles that were left out and have a higher version than the
// chosen one.
func (r *Resolution) newer() []LeftOut {
	chosen, err := bundle.ParseVersion(r.Identity.Version)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.LeftOut), func(left LeftOut) bool {
		version, err := bundle.ParseVersion(left.Version)
		return err != nil || version.Compare(chosen) <= 0
	})
}

// ruled says for every rule, in the words of its details, which bundle is the
// first that it leaves out, and how many there are besides.
func ruled(list []LeftOut) []string {
	type rule struct {
		reason          Reason
		detail, catalog string
	}
	more := map[rule]int{}
	var firsts []LeftOut
	of := func(left LeftOut) rule { return rule{left.Reason, left.Detail, left.Catalog} }
	for _, left := range list {
		if _, known := more[of(left)]; !known {
			firsts = append(firsts, left)
			more[of(left)] = -1
		}
		more[of(left)]++
	}
	texts := make([]string, 0, len(firsts))
	for _, left := range firsts {
		text := fmt.Sprintf("%q in catalog %q", left.Name, left.Catalog)
		if n := more[of(left)]; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		texts = append(texts, text+" ("+left.Detail+")")
	}
	return texts
}

// Explanation is one line for people on what stood in the way, bundle by
// bundle, where the message of [Error.Error] does not tell: which rules left
// nothing over, what can be reached instead and on which way, what the catalogs
// disagree about. It is empty for the other kinds.
func (e *Error) Explanation() string {
	switch e.Kind {
	case NoBundle:
		return e.explainNone()
	case Ambiguous:
		return e.explainTie()
	case Unreadable:
		return e.explainUnreadable()
	case Unchecked, BadVersion, InvalidInstalled:
	}
	return ""
}

func (e *Error) explainNone() string {
	if len(e.Catalogs) == 0 {
		return e.explainNoPackage()
	}
	if len(e.LeftOut) == 0 {
		return fmt.Sprintf("package %q has no bundles", e.Package)
	}
	parts := []string{explainAwaited(e.Awaited), explainDeadEnd(e.LeftOut)}
	if e.evaluation != nil {
		parts = append(parts, e.evaluation.explainChannels(), e.explainVersions(), e.evaluation.explainEdges())
	}
	parts = append(parts, fmt.Sprintf("of %s, %s", counted(len(e.LeftOut), "bundle"), strings.Join(e.counts(), ", ")))
	return bounded(parts)
}

func (e *Error) explainNoPackage() string {
	text := fmt.Sprintf("no catalog has package %q", e.Package)
	if e.evaluation == nil {
		return text
	}
	var asked []string
	for _, catalog := range e.evaluation.catalogs {
		asked = append(asked, strconv.Quote(catalog.Name))
	}
	if len(asked) == 0 {
		return text + ": there is none to look in; check that catalogs are available, and the selector of catalogs"
	}
	slices.Sort(asked)
	return bounded([]string{fmt.Sprintf("%s: looked in %s; check its name and the selector of catalogs", text, listed(asked))})
}

func explainAwaited(awaited *LeftOut) string {
	if awaited == nil {
		return ""
	}
	return fmt.Sprintf("%q %s", awaited.Name, awaited.Detail)
}

// explainDeadEnd says how to have the best bundle all the same that the awaited one
// keeps from being chosen.
func explainDeadEnd(leftOut []LeftOut) string {
	left := firstDeadEnd(leftOut)
	if left == nil {
		return ""
	}
	return fmt.Sprintf("no upgrade leads there from %q, which could be installed now: set version to %q to have that one", left.Name, left.Version)
}

func firstDeadEnd(leftOut []LeftOut) *LeftOut {
	first := slices.IndexFunc(leftOut, func(left LeftOut) bool { return left.Reason == DeadEnd })
	if first < 0 {
		return nil
	}
	return &leftOut[first]
}

// explainVersions says which versions a range leaves out, if no upgrades from what
// is installed tell of any.
func (e *Error) explainVersions() string {
	if len(e.Reachable) > 0 {
		return ""
	}
	var versions []string
	for _, left := range e.LeftOut {
		if left.Reason == OutsideRange && !slices.Contains(versions, left.Version) {
			versions = append(versions, left.Version)
		}
	}
	if len(versions) == 0 {
		return ""
	}
	return "versions outside of the range: " + listed(versions)
}

// counts says how many bundles each rule has left out.
func (e *Error) counts() []string {
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
		{RequirementNotMet, "whose requirements are not met"},
		{DeadEnd, "with no upgrade to the newest"},
	} {
		if count := counts[rule.reason]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, rule.text))
		}
	}
	return parts
}

func (e *Error) explainTie() string {
	var offers []string
	for _, left := range e.LeftOut {
		if left.Reason == Tied {
			offers = append(offers, fmt.Sprintf("%q in catalog %q", left.Name, left.Catalog))
		}
	}
	return fmt.Sprintf("priority %d have %s", e.Priority, listed(offers))
}

func (e *Error) explainUnreadable() string {
	if e.Bundle.Name != "" {
		return fmt.Sprintf("%q would be chosen, but catalogs %v might have a better one", e.Bundle.Name, e.Catalogs)
	}
	if len(e.LeftOut) == 0 {
		return fmt.Sprintf("no other catalog has bundles of package %q", e.Package)
	}
	if len(e.counts()) == 0 {
		return ""
	}
	return fmt.Sprintf("catalogs %v might have one that fits; %s", e.Catalogs, e.explainNone())
}

func listed(items []string) string {
	if more := len(items) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:maxListed], ", "), more)
	}
	return strings.Join(items, ", ")
}

func counted(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

// bounded joins the parts that say anything, the first ones whole.
func bounded(parts []string) string {
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return excerpt.Cut(strings.Join(parts, "; "), maxExplanation)
}
