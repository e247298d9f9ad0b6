package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// maxListed bounds the versions, bundles and rules that an explanation names.
const maxListed = 10

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
	}
	if len(r.Unreadable) > 0 {
		parts = append(parts, fmt.Sprintf("catalogs %v cannot be read", r.Unreadable))
	}
	return strings.Join(parts, "; ")
}

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
		return fmt.Sprintf("no catalog has package %q", e.Package)
	}
	if len(e.LeftOut) == 0 {
		return fmt.Sprintf("package %q has no bundles", e.Package)
	}
	parts := []string{fmt.Sprintf("of %d bundles, %s", len(e.LeftOut), strings.Join(e.counts(), ", "))}
	lacking := func(left LeftOut) bool { return left.Reason == RequirementNotMet }
	if first := slices.IndexFunc(e.LeftOut, lacking); first >= 0 {
		parts = append(parts, fmt.Sprintf("%q %s", e.LeftOut[first].Name, e.LeftOut[first].Detail))
	}
	if len(e.Reachable) > 0 {
		parts = append(parts, "upgrades lead to "+listed(e.Reachable))
	}
	if route := e.explainRoute(); route != "" {
		parts = append(parts, route)
	}
	return strings.Join(parts, "; ")
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
	} {
		if count := counts[rule.reason]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, rule.text))
		}
	}
	return parts
}

func (e *Error) explainRoute() string {
	if e.route == nil {
		return ""
	}
	route := e.route()
	if len(route) < 2 {
		return ""
	}
	last := len(route) - 1
	return fmt.Sprintf("the way to %s is over %s", route[last], listed(route[:last]))
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
	if e.Bundle.Name == "" {
		return ""
	}
	return fmt.Sprintf("%q would be chosen, but catalogs %v might have a better one", e.Bundle.Name, e.Catalogs)
}

func listed(items []string) string {
	if more := len(items) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:maxListed], ", "), more)
	}
	return strings.Join(items, ", ")
}
