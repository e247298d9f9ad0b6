package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// whyOf tells, in one line, what is installed or what stands in the way, which
// newer bundles were left out and by which rule, and who is affected. The texts
// of the other conditions are fixed; this one has what they leave open.
func whyOf(ext *ocv1.ClusterExtension, outcome Outcome, v verdict) string {
	first := openingOf(outcome, v)
	parts := contentParts(outcome)
	if text := issuerText(outcome); text != "" {
		parts = append(parts, text)
	}
	if text := explanationOf(outcome); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, workloadParts(outcome)...)
	for _, one := range outcome.Shared {
		parts = append(parts, one.Warning())
	}
	if len(outcome.Flapping) > 0 {
		parts = append(parts, "changed again after each repair, and therefore repaired less often: "+excerpt.Of(outcome.Flapping, maxList)+": have them stop")
	}
	if text := deprecatedText(ext, outcome); text != "" {
		parts = append(parts, text)
	}
	if _, told := errors.AsType[*resolve.Error](outcome.Err); !told {
		parts = append(parts, supplyOf(outcome)...)
	}
	if text := pollingPart(outcome, v); text != "" {
		parts = append(parts, text)
	}
	first = unlikeSignatures(first)
	for i := range parts {
		parts[i] = unlikeSignatures(parts[i])
	}
	if text := signaturesText(outcome); text != "" {
		parts = append(parts, text)
	}
	if len(outcome.Dependents) > 0 {
		parts = append(parts, textAffected+excerpt.Of(outcome.Dependents, maxList))
	}
	return within(first, parts, explain(outcome.Owner))
}

// contentParts returns the parts of a message about the installed objects, except workloads.
func contentParts(outcome Outcome) (parts []string) {
	if outcome.RepairErr != nil && outcome.Stage != StageRepair {
		parts = append(parts, "what is installed cannot be repaired: "+outcome.RepairErr.Error())
	}
	if text, ok := remainsTexts[outcome.Remains]; ok && outcome.RepairErr == nil {
		parts = append(parts, text)
	}
	if len(outcome.Leftovers) > 0 {
		parts = append(parts, excerpt.Of(outcome.Leftovers, maxPart))
	}
	return parts
}

// textAffected is followed by extensions that the choice affects.
const textAffected = "others are affected: "

// openingOf is what is installed or what stands in the way, with what holds it up.
func openingOf(outcome Outcome, v verdict) string {
	first := v.summary
	if v.disposition == Settled {
		first = settledText(outcome)
	}
	if outcome.waitsForHook() {
		first += "; " + outcome.hookText()
		if !outcome.Hook.Going { // its pods may wait for an image, or for a node
			first += "; " + lookIn(cmp.Or(outcome.Hook.Object.Namespace, outcome.Owner.Namespace))
		}
	}
	if outcome.Suspended != nil {
		first += "; " + suspendedText(outcome)
	}
	if outcome.Pending != nil {
		first += "; " + pendingText(outcome)
	}
	if outcome.Veto != nil {
		first += "; " + outcome.Veto.Error()
	}
	return first
}

// pendingText says what waits for an approval, and how to see more of it or to approve it.
func pendingText(outcome Outcome) string {
	text := outcome.Pending.Error()
	if outcome.Pending.Manual {
		text += fmt.Sprintf("; `kubectl extension approve %s` does so", outcome.Owner.Name)
	}
	if outcome.Pending.Growth != nil {
		text += fmt.Sprintf("; %s prints the rules that it takes", rights(outcome.Owner))
	}
	return text
}

// within puts the parts behind the first, which is never cut for them, and says
// where to read on if they do not all fit.
func within(first string, parts []string, readOn string) string {
	all := []string{excerpt.Line(first, maxText)}
	for _, part := range parts {
		limit := maxPart
		if strings.HasPrefix(part, workloadsPart) {
			limit = len(workloadsPart) + maxWorkloads
		}
		all = append(all, excerpt.Line(part, limit))
	}
	text := strings.Join(all, "; ")
	if len(text) <= maxText {
		return text
	}
	readOn = "; " + readOn
	return excerpt.Line(text, maxText-len(readOn)) + readOn
}

// workloadsPart begins the part about workloads.
const workloadsPart = "workloads: "

// workloadParts say what is amiss with the workloads, and where to look if somebody
// has to.
func workloadParts(outcome Outcome) []string {
	status, reasons := availability(outcome)
	var parts []string
	if outcome.isSettling() {
		parts = append(parts, settlingText(outcome))
	}
	if len(reasons) == 0 {
		return parts
	}
	parts = append(parts, workloadsPart+excerpt.Of(reasons, maxWorkloads))
	if status == metav1.ConditionFalse || hasFailed(outcome) {
		parts = append(parts, lookAt(outcome))
	}
	return parts
}

func lookIn(namespace string) string {
	return fmt.Sprintf("`kubectl -n %s get pods,events` says more", namespace)
}

// lookAt is where to see why a workload does not serve, and what to do if that is known.
func lookAt(outcome Outcome) string {
	look := lookIn(outcome.Owner.Namespace)
	if one, found := withoutPods(outcome.Workloads); found && len(describe(one)) <= longestCommand {
		look = describe(one)
	}
	if slices.ContainsFunc(outcome.Workloads, func(w health.Workload) bool { return strings.Contains(w.Reason, exceededQuota) }) {
		return nextQuota + "; " + look
	}
	return look
}

// withoutPods returns the first object that is not available; false if pods or events show why any of them is not.
func withoutPods(workloads []health.Workload) (first object.Key, found bool) {
	for _, workload := range workloads {
		if workload.Available == metav1.ConditionTrue && !workload.Stuck {
			continue
		}
		kind := workload.Key.GroupKind
		if !health.HasStatus(kind) || health.RunsPods(kind) || kind == object.APIServiceKind {
			return object.Key{}, false
		}
		if !found {
			first, found = workload.Key, true
		}
	}
	return first, found
}

// longestCommand is the length of the longest command that a message contains, in bytes.
const longestCommand = 200

func describe(one object.Key) string {
	namespace := ""
	if one.Namespace != "" {
		namespace = "-n " + one.Namespace + " "
	}
	return fmt.Sprintf("`kubectl %sdescribe %s %s` says more", namespace, one.GroupKind, one.Name)
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
	to := textOf(outcome.Target)
	switch from := outcome.Installed; {
	case from == nil:
		return fmt.Sprintf("installing %s: %s", to, doing)
	case from.Bundle == target:
		return fmt.Sprintf("applying %s anew: %s", to, doing)
	default:
		return fmt.Sprintf("upgrading from %q version %q to %s: %s", from.Bundle.Name, from.Bundle.Version, to, doing)
	}
}

// textOf names the bundle of a target, or its image where that has yet to tell.
func textOf(target Target) string {
	if target.Bundle.Name == "" {
		return "image " + target.Image
	}
	return fmt.Sprintf("%q version %q", target.Bundle.Name, target.Bundle.Version)
}

func settledText(outcome Outcome) string {
	if outcome.Installed == nil {
		return "nothing is installed"
	}
	text := fmt.Sprintf("%q version %q is installed", outcome.Installed.Bundle.Name, outcome.Installed.Bundle.Version)
	if outcome.Installed.IsEmpty {
		text += " without objects: the chart renders none with spec.config.inline.values"
	}
	if outcome.hasMore() {
		return fmt.Sprintf("%s, on the way to %q", text, outcome.Onward.Bundle.Name)
	}
	switch resolution := outcome.Target.Resolution; {
	case resolution != nil:
		return fmt.Sprintf("%s, from catalog %q", text, resolution.Catalog)
	case outcome.Target.IsNamed:
		return text + ", which spec.source.bundle names"
	}
	return text + "; no upgrades can be found: " + noOfferText(outcome)
}

// noOfferText returns why catalogs offer no upgrades of the installed bundle, and what to do about it.
func noOfferText(outcome Outcome) string {
	unresolved := outcome.Target.NoOffer
	switch {
	case unresolved == nil:
		return "no catalog that spec.source.catalog.selector selects is available"
	case unresolved.Kind == resolve.NoBundle:
		return unresolved.Explanation()
	}
	outcome.Stage, outcome.Err = StageResolve, unresolved
	return summaryOf(outcome)
}

// explanationOf is empty where there was no choice; why not says the summary.
func explanationOf(outcome Outcome) string {
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
	return fmt.Sprintf("catalog %q deprecates %s", resolution.Catalog, excerpt.Of(things, maxList))
}

// missingOf is what the cluster lacks for the bundle that is wanted.
func missingOf(outcome Outcome) []requirement.Unmet {
	target := outcome.Onward
	if unmet, ok := errors.AsType[*UnmetError](outcome.Err); ok {
		return unmet.Unmet
	}
	if target.Resolution != nil {
		return target.Resolution.Lacking()
	}
	if unresolved, ok := errors.AsType[*resolve.Error](target.Err); ok {
		return unresolved.Lacking()
	}
	return nil
}
