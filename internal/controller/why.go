package controller

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// maxNamed bounds the packages and extensions that one message names.
const maxNamed = 10

// whyOf tells, in one line, what is installed or what stands in the way, which
// newer bundles were left out and by which rule, and who is affected. The texts
// of the other conditions are fixed; this one has what they leave open.
func whyOf(ext *ocv1.ClusterExtension, outcome Outcome, v verdict) string {
	parts := []string{v.message}
	if v.disposition == Settled {
		parts[0] = settledText(outcome)
	}
	if outcome.Pending != nil {
		parts = append(parts, outcome.Pending.Error())
	}
	if text, ok := remainsTexts[outcome.Remains]; ok && outcome.RepairErr == nil {
		parts = append(parts, text)
	}
	if text := issuerText(outcome); text != "" {
		parts = append(parts, text)
	}
	if text := explanationOf(outcome); text != "" {
		parts = append(parts, text)
	}
	if _, reasons := availability(outcome); len(reasons) > 0 {
		parts = append(parts, "workloads: "+named(reasons))
	}
	if len(outcome.Contested) > 0 {
		parts = append(parts, "changed again after each repair, and therefore repaired less often: "+named(outcome.Contested))
	}
	if text := deprecatedText(ext, outcome); text != "" {
		parts = append(parts, text)
	}
	if len(outcome.Supply.Providers) > 0 {
		parts = append(parts, "what is missing comes with "+named(outcome.Supply.Providers))
	}
	parts = append(parts, outcome.Supply.Gaps...)
	if len(outcome.Dependents) > 0 {
		parts = append(parts, "others are affected: "+named(outcome.Dependents))
	}
	return oneLine(strings.Join(parts, "; "))
}

var remainsTexts = map[Remains]string{
	RemainsStay:      "an upgrade that was begun is left as it is for now, so that it can go on",
	RemainsTakenBack: "an upgrade that was begun is taken back as far as it has changed what is installed",
}

// issuerText is empty unless what is installed lacks who issues its certificates.
func issuerText(outcome Outcome) string {
	if !lacksIssuer(outcome.RepairErr) {
		return ""
	}
	return issuerTexts[cmp.Or(outcome.Observed.Issuer, IssuerGone)]
}

// underwayText says which revision is under way, and what is being done for it.
func underwayText(outcome Outcome, doing string) string {
	target := outcome.Target.Bundle
	to := fmt.Sprintf("%q version %q", target.Name, target.Version)
	switch from := outcome.Installed; {
	case from == nil:
		return fmt.Sprintf("installing %s: %s", to, doing)
	case from.Bundle == target:
		return fmt.Sprintf("applying %s anew: %s", to, doing)
	default:
		return fmt.Sprintf("upgrading from %q version %q to %s: %s", from.Bundle.Name, from.Bundle.Version, to, doing)
	}
}

func settledText(outcome Outcome) string {
	text := fmt.Sprintf("%q version %q is installed", outcome.Installed.Bundle.Name, outcome.Installed.Bundle.Version)
	if outcome.unfinished() {
		return fmt.Sprintf("%s, on the way to %q", text, outcome.Onward.Bundle.Name)
	}
	if resolution := outcome.Target.Resolution; resolution != nil {
		return fmt.Sprintf("%s, from catalog %q", text, resolution.Catalog)
	}
	return text + "; there is no catalog to look for newer versions in"
}

func explanationOf(outcome Outcome) string {
	if unresolved, ok := errors.AsType[*resolve.Error](outcome.Err); ok {
		return unresolved.Explanation()
	}
	if outcome.Onward.Resolution != nil {
		return outcome.Onward.Resolution.Explanation()
	}
	return ""
}

// deprecatedText says which catalog deprecates what, which the conditions on
// deprecation do not.
func deprecatedText(ext *ocv1.ClusterExtension, outcome Outcome) string {
	resolution := outcome.Target.Resolution
	if resolution == nil {
		return ""
	}
	var things []string
	for _, d := range applicable(ext, outcome) {
		thing := map[resolve.Scope]string{
			resolve.PackageScope: "the package",
			resolve.ChannelScope: fmt.Sprintf("channel %q", d.Name),
			resolve.BundleScope:  fmt.Sprintf("bundle %q", d.Name),
		}[d.Scope]
		things = append(things, thing)
	}
	if len(things) == 0 {
		return ""
	}
	return fmt.Sprintf("catalog %q deprecates %s", resolution.Catalog, named(things))
}

// missingOf is what the cluster lacks for the bundle that is wanted.
func missingOf(target Target) []requirement.Unmet {
	if target.Resolution != nil {
		return target.Resolution.Lacking()
	}
	if unresolved, ok := errors.AsType[*resolve.Error](target.Err); ok {
		return unresolved.Lacking()
	}
	return nil
}

func named(items []string) string {
	if more := len(items) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:maxNamed], ", "), more)
	}
	return strings.Join(items, ", ")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
