package controller

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Bounds on texts, in bytes.
const (
	// maxText is for every text that people read at a glance: all but Progressing,
	// which has lists whole.
	maxText = 1000

	// maxSummary leaves room in it for what else there is to say.
	maxSummary = 900

	// maxPart is for one of several things that a text tells, maxList for what it
	// lists.
	maxPart = 340
	maxList = 240

	// maxWorkloads bounds the part about workloads. The cause is at its end, and can be the answer of the API server
	// about each field of a pod.
	maxWorkloads = 640
)

// obstacle is what stands in the way of an extension, in plain words.
type obstacle struct {
	what string

	// next is what somebody can do about it; empty if what says it.
	next string
}

// summaryOf says in one short line what stands in the way and what to do next. The
// message of Progressing cannot: it has the words of the reference implementation.
func summaryOf(outcome Outcome) string {
	found := obstacleOf(outcome)
	what, next := concernOf(outcome)+excerpt.Message(found.what), ""
	if found.next != "" {
		next = "; " + found.next
	}
	return excerpt.Line(what, maxSummary-len(next)) + next
}

// concernOf is what cannot be done.
func concernOf(outcome Outcome) string {
	if failed, ok := errors.AsType[*installation.HookFailedError](outcome.Err); ok && failed.IsAfter() {
		return fmt.Sprintf("%q is installed, but ", outcome.Installed.Bundle.Name)
	}
	name := fmt.Sprintf("%q", outcome.Target.Bundle.Name)
	if outcome.Target.Bundle.Name == "" {
		name = textOf(outcome.Target)
	}
	switch outcome.Stage {
	case StageFetch, StageRender, StageApply:
		switch installed := outcome.Installed; {
		case installed == nil:
			return name + " cannot be installed: "
		case installed.Bundle != outcome.Target.Bundle:
			return "the upgrade to " + name + " cannot go on: "
		}
		return name + " cannot be changed as wanted: "
	case StageRepair:
		return name + " cannot be repaired: "
	case StageValidate, StageObserve, StageResolve:
	}
	return ""
}

// obstacleOf knows the errors that somebody has to do something about.
func obstacleOf(outcome Outcome) obstacle {
	err := outcome.Err
	if outcome.Observed.InstallationErr != nil && outcome.Stage == StageObserve {
		return obstacle{
			what: fmt.Sprintf("the release records cannot be read: %v", err),
			next: "nothing is changed until they can; they are Secrets in the namespace of the controller",
		}
	}
	for _, known := range []func(Outcome) (obstacle, bool){
		inSpec, inServiceAccount, inImpersonation, inCatalogs, inSignatures, inBundle, inRights, inDefinitions, inHooks, inObjects,
	} {
		if found, ok := known(outcome); ok {
			return found
		}
	}
	return obstacle{what: err.Error(), next: nextOf(outcome)}
}

// What ends an obstacle that is in the spec alone, and one that is between the spec and
// the bundle.
const (
	nextEdit   = "nothing is tried until the spec is edited"
	nextChange = "nothing is tried until the spec or the catalog changes"
)

func inSpec(outcome Outcome) (obstacle, bool) {
	if invalid, ok := errors.AsType[*InvalidSpecError](outcome.Err); ok {
		return obstacle{what: "the spec cannot be carried out: " + invalid.Error(), next: nextEdit}, true
	}
	if unapproved, ok := errors.AsType[*UnapprovedError](outcome.Err); ok {
		return obstacle{what: unapproved.Error(), next: "correct spec.source.catalog.approvedVersion and approvedDigest, or leave them out"}, true
	}
	invalid, ok := errors.AsType[*bundle.ConfigError](outcome.Err)
	if !ok {
		return obstacle{}, false
	}
	return obstacle{
		what: "the bundle does not take what is in spec.config.inline: " + excerpt.Of(invalid.Problems, maxPart),
		next: nextBetween(outcome),
	}, true
}

// nextBetween is for what is between the spec and the bundle.
func nextBetween(outcome Outcome) string {
	if outcome.Target.IsNamed {
		return nextEdit
	}
	return nextChange
}

func inServiceAccount(outcome Outcome) (obstacle, bool) {
	if missing, ok := errors.AsType[*MissingServiceAccountError](outcome.Err); ok {
		if missing.NoNamespace {
			return obstacle{
				what: fmt.Sprintf("namespace %q does not exist, or is being deleted", missing.Namespace),
				next: fmt.Sprintf("create it, and ServiceAccount %q in it", missing.Name),
			}, true
		}
		return obstacle{
			what: fmt.Sprintf("ServiceAccount %q does not exist in namespace %q", missing.Name, missing.Namespace),
			next: anotherAccount(outcome) + "; until then nothing is installed or repaired",
		}, true
	}
	unreadable, ok := errors.AsType[*UnreadableServiceAccountError](outcome.Err)
	if !ok {
		return obstacle{}, false
	}
	return obstacle{
		what: fmt.Sprintf("ServiceAccount %q in namespace %q cannot be read: %v", unreadable.Name, unreadable.Namespace, unreadable.Err),
		next: nextRetry,
	}, true
}

// anotherAccount is what to do without the ServiceAccount. That of an extension cannot be
// changed, and to delete one takes what is installed along.
func anotherAccount(outcome Outcome) string {
	if outcome.Installed == nil {
		return "create it, or create the extension anew with another one"
	}
	return fmt.Sprintf("create it, or create the extension anew with another one after "+
		"`kubectl delete --cascade=orphan clusterextension/%s`, which keeps what is installed", outcome.Owner.Name)
}

// notAllowedToAct are the words in which an API server refuses the controller to act as
// somebody, before it looks at what is asked: it writes "impersonate", or since 1.36 for
// example "impersonate-on:serviceaccount:create".
var notAllowedToAct = regexp.MustCompile(`User ("[^"]*") cannot impersonate`)

func inImpersonation(outcome Outcome) (obstacle, bool) {
	var refusal apierrors.APIStatus
	if !errors.As(outcome.Err, &refusal) || !apierrors.IsForbidden(outcome.Err) {
		return obstacle{}, false
	}
	who := notAllowedToAct.FindStringSubmatch(refusal.Status().Message)
	if who == nil {
		return obstacle{}, false
	}
	return obstacle{
		what: fmt.Sprintf("the controller may not act as ServiceAccount %q in namespace %q", outcome.Owner.ServiceAccount, outcome.Owner.Namespace),
		next: fmt.Sprintf("grant %s impersonate on serviceaccounts in this namespace: "+
			"`kubectl apply -n %s -k config/overlays/impersonate-by-namespace/namespace` does", who[1], outcome.Owner.Namespace),
	}, true
}

// inCatalogs is about choices that could not be made. What the explanation of one
// tells comes before what to do.
func inCatalogs(outcome Outcome) (obstacle, bool) {
	unresolved, ok := errors.AsType[*resolve.Error](outcome.Err)
	if !ok {
		return obstacle{}, false
	}
	found := obstacle{what: unresolved.Error(), next: explain(outcome.Owner)}
	switch unresolved.Kind {
	case resolve.Unreadable:
		catalog := strings.Join(unresolved.Catalogs[:min(1, len(unresolved.Catalogs))], "")
		found.what = fmt.Sprintf("catalog %q cannot be read: %v", catalog, unresolved.Err)
		found.next = fmt.Sprintf("`kubectl describe clustercatalog %s` says more; spec.source.catalog.selector can leave it out", catalog)
		var malformed interface {
			error
			Malformed() bool
		}
		if errors.As(unresolved.Err, &malformed) && malformed.Malformed() {
			// The catalog is served, and its status is that of all other packages.
			found.next = "the publisher of the catalog has to fix it; spec.source.catalog.selector can leave it out"
		}
	case resolve.BadVersion, resolve.InvalidInstalled:
		found.next = "the publisher of the catalog has to fix it; spec.source.catalog.version can choose another bundle"
	case resolve.Unchecked:
		found.what = fmt.Sprintf("the requirements of bundle %q cannot be checked: %v", unresolved.Bundle.Name, unresolved.Err)
		found.next = nextRetry
	case resolve.Ambiguous:
		found.next = "give one of the catalogs a higher spec.priority, or choose it with spec.source.catalog.selector"
	case resolve.NoBundle:
		switch {
		case len(supplyOf(outcome)) > 0:
			found.next = excerpt.Line(strings.Join(supplyOf(outcome), "; "), maxPart)
		case len(unresolved.Catalogs) == 0:
			found.next = "`kubectl get clustercatalog` shows which catalogs there are; packageName and selector have to match one that is served"
		}
	}
	if why := unresolved.Explanation(); why != "" {
		found.what += "; " + why
	}
	return found, true
}

// supplyOf says what would bring what is missing, and what nothing brings.
func supplyOf(outcome Outcome) []string {
	var texts []string
	if len(outcome.Supply.Providers) > 0 {
		texts = append(texts, "what is missing comes with "+excerpt.Of(outcome.Supply.Providers, maxList))
	}
	return append(texts, outcome.Supply.Gaps...)
}

func explain(owner object.Owner) string {
	return fmt.Sprintf("`kubectl extension explain clusterextension/%s` tells of each bundle", owner.Name)
}

// nextBundle is what to do where no other obstacle is than the bundle.
func nextBundle(outcome Outcome) string {
	if outcome.Target.IsNamed {
		return "name another image with spec.source.bundle.ref"
	}
	return "choose another version with spec.source.catalog.version"
}

// nextValues comes before what to do about a bundle whose templates had values.
const nextValues = "correct spec.config.inline.values if they make it so, or "

// nextContent is what to do where the objects of the bundle are at fault.
func nextContent(outcome Outcome) string {
	if outcome.HasValues {
		return nextValues + nextBundle(outcome)
	}
	return nextBundle(outcome)
}

// nextInvalid is what to do where the bundle is invalid, or what its templates have made.
func nextInvalid(outcome Outcome) string {
	if outcome.HasValues {
		return nextContent(outcome) + "; otherwise the publisher of the bundle has to fix it"
	}
	return "the publisher has to fix it; " + nextBundle(outcome)
}

func inBundle(outcome Outcome) (obstacle, bool) {
	nextVersion := nextBundle(outcome)
	var (
		unusable    *UnusableImageError
		moved       *MovedImageError
		unmet       *UnmetError
		invalid     *bundle.InvalidError
		unsupported *bundle.UnsupportedError
		tooLarge    tooLargeError
		refused     interface {
			error
			Refused() bool
		}
	)
	err := outcome.Err
	switch {
	case errors.As(err, &unusable) && unusable.ByTag:
		return obstacle{what: err.Error(), next: "the publisher of the image has to fix it; the controller checks regularly whether the tag points to another image"}, true
	case errors.As(err, &unusable) && outcome.Target.IsNamed:
		return obstacle{what: err.Error(), next: nextVersion}, true
	case errors.As(err, &unusable):
		return obstacle{what: err.Error(), next: "nothing is tried until the catalog names another image, or the spec another version"}, true
	case errors.As(err, &moved):
		return obstacle{what: err.Error()}, true
	case errors.As(err, &unmet):
		return obstacle{what: err.Error(), next: unmet.next(nextVersion)}, true
	case errors.As(err, &invalid):
		violations := make([]string, len(invalid.Violations))
		for i, violation := range invalid.Violations {
			violations[i] = violation.String()
		}
		return obstacle{what: "the bundle is invalid: " + excerpt.Of(violations, maxPart), next: nextInvalid(outcome)}, true
	case errors.As(err, &tooLarge):
		return obstacle{what: err.Error(), next: nextContent(outcome)}, true
	case errors.As(err, &unsupported):
		return unsupportedObstacle(outcome, unsupported), true
	case errors.As(err, &refused) && refused.Refused():
		return obstacle{what: err.Error(), next: "give the ServiceAccount a pull secret for the registry, or the controller a global one"}, true
	case outcome.Stage == StageFetch:
		return obstacle{what: err.Error(), next: "is the image there, and do mirrors and certificates of the controller lead to it? It is tried again"}, true
	}
	return obstacle{}, false
}

func unsupportedObstacle(outcome Outcome, unsupported *bundle.UnsupportedError) obstacle {
	reasons := excerpt.Of(unsupported.Reasons, maxPart)
	switch {
	case !unsupported.ByName:
		return obstacle{what: "the bundle needs what is not supported: " + reasons, next: nextBundle(outcome)}
	case outcome.Installed != nil: // to create it again would delete what is installed first
		return obstacle{what: reasons, next: nextBundle(outcome)}
	}
	return obstacle{what: reasons, next: "create the extension again under a shorter name"}
}

// rights is the command that prints what a ServiceAccount needs.
func rights(owner object.Owner) string {
	return fmt.Sprintf("`kubectl extension bundle rbac clusterextension/%s`", owner.Name)
}

func inRights(outcome Outcome) (obstacle, bool) {
	missing, ok := errors.AsType[*permission.MissingError](outcome.Err)
	if !ok {
		return obstacle{}, false
	}
	lines := make([]string, len(missing.Rules))
	for i, rule := range missing.Rules {
		lines[i] = rule.Text()
	}
	count := "1 right is missing"
	if n := len(lines); n > 1 {
		count = fmt.Sprintf("%d rights are missing", n)
	}
	return obstacle{
		what: count + ": " + excerpt.Of(lines, maxPart),
		next: fmt.Sprintf("%s prints all that ServiceAccount %q in namespace %q needs as YAML",
			rights(outcome.Owner), outcome.Owner.ServiceAccount, outcome.Owner.Namespace),
	}, true
}

func inDefinitions(outcome Outcome) (obstacle, bool) {
	unsafe, ok := errors.AsType[*preflight.UnsafeError](outcome.Err)
	if !ok {
		return obstacle{}, false
	}
	const maxFinding, maxOffender = 200, 160
	first := unsafe.Findings[0]
	names := sets.New[string]()
	for _, finding := range unsafe.Findings {
		names.Insert(finding.CRD)
	}
	what := fmt.Sprintf("it would break what %s define: ", excerpt.Of(sets.List(names), maxOffender))
	if names.Len() == 1 {
		what = fmt.Sprintf("it would break what %s defines: ", first.CRD)
	}
	what += excerpt.Line(first.Line(), maxFinding)
	if more := len(unsafe.Findings) - 1; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	if len(unsafe.Offenders) > 0 {
		what += "; " + excerpt.Of(unsafe.Offenders, maxOffender)
	}
	next := first.Advice
	if unsafe.Unread {
		next = fmt.Sprintf("let the ServiceAccount list them, as %s prints it", rights(outcome.Owner))
	}
	return obstacle{what: what, next: next + "; spec.install.preflight.crdUpgradeSafety can let it pass"}, true
}

func inHooks(outcome Outcome) (obstacle, bool) {
	failed, ok := errors.AsType[*installation.HookFailedError](outcome.Err)
	if !ok {
		return obstacle{}, false
	}
	return obstacle{what: failed.Error(), next: failed.Next}, true
}

// inObjects is about errors that sum themselves up.
func inObjects(outcome Outcome) (obstacle, bool) {
	if missing, ok := errors.AsType[*object.MissingNamespacesError](outcome.Err); ok {
		it := "it"
		if len(missing.Namespaces) > 1 {
			it = "them"
		}
		found := obstacle{
			what: missing.Summary(),
			next: fmt.Sprintf("create %s, with the permissions that %s prints", it, rights(outcome.Owner)),
		}
		if missing.Object != "" {
			found.what += fmt.Sprintf("; %s requires namespace %q", missing.Object, missing.Namespaces[0])
		}
		switch {
		case missing.Value != "":
			found.next += fmt.Sprintf(", or change spec.config.inline.values.%s, which names it", missing.Value)
		case missing.Object == "":
			found.next += fmt.Sprintf(", or leave %s out of spec.config.inline", it)
		}
		return found, true
	}
	if held, isHeld := errors.AsType[interface {
		error
		Extension() string
	}](outcome.Err); isHeld {
		pkg := outcome.Target.Bundle.Package
		is := func(n Neighbour) bool { return n.Name == held.Extension() && n.Bundle.Package == pkg }
		if slices.ContainsFunc(outcome.Observed.Surroundings.Neighbours, is) {
			return obstacle{
				what: fmt.Sprintf("package %q is installed by ClusterExtension %q", pkg, held.Extension()),
				next: "a cluster can have it once; " + object.KeepOne(outcome.Owner.Name, held.Extension()),
			}, true
		}
	}
	summaries := summariesOf(outcome.Err)
	if len(summaries) == 0 {
		return obstacle{}, false
	}
	found := obstacle{what: strings.Join(summaries, "; ")}
	if refusal := apierrors.APIStatus(nil); errors.As(outcome.Err, &refusal) {
		found.next = nextOf(outcome)
	}
	return found, true
}

// summariesOf returns the summaries of all errors that are joined: a repair can fail for several reasons.
func summariesOf(err error) []string {
	switch err := err.(type) { //nolint:errorlint // it unwraps
	case interface{ Summary() string }:
		return []string{err.Summary()}
	case interface{ Unwrap() []error }:
		var all []string
		for _, one := range err.Unwrap() {
			all = append(all, summariesOf(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return summariesOf(err.Unwrap())
	}
	return nil
}

const nextRetry = "it is tried again"

// exceededQuota are the words in which an API server refuses what a quota has no room
// for; a Deployment has them of its pods.
const (
	exceededQuota = "exceeded quota"
	nextQuota     = "raise the quota, or make room in it"
)

// uncountedQuota are the words in which an API server refuses what a new quota limits, until its status is written.
const uncountedQuota = "status unknown for quota"

// isTerminating are the words in which an API server refuses what is to be made in a namespace
// that is being deleted.
const isTerminating = "because it is being terminated"

// nextOf is what to do about an answer of the API server.
func nextOf(outcome Outcome) string {
	var refusal apierrors.APIStatus
	if !errors.As(outcome.Err, &refusal) {
		return nextRetry
	}
	if _, ok := errors.AsType[*preflight.ImmutableError](outcome.Err); ok {
		return "" // says it
	}
	if collision, ok := errors.AsType[*object.CollisionError](outcome.Err); ok {
		return nextCollision(outcome, collision)
	}
	message, details := refusal.Status().Message, refusal.Status().Details
	switch err := outcome.Err; {
	case strings.Contains(message, "admission webhook"):
		return "the webhook, or who runs it, has to let the object pass"
	case strings.Contains(message, "attempting to grant RBAC permissions not currently held"):
		return fmt.Sprintf("the ServiceAccount needs what it is to grant; %s prints it", rights(outcome.Owner))
	case strings.Contains(message, isTerminating):
		return "it goes on when the namespace is there anew"
	case apierrors.IsForbidden(err) && outcome.Stage == StageRender:
		return "" // a lookup of templates, which says it; bundle rbac cannot know that right
	case isLackOfRights(refusal):
		return fmt.Sprintf("%s prints the rights that the ServiceAccount needs", rights(outcome.Owner))
	case apierrors.IsForbidden(err):
		return nextAdmission(outcome, message)
	case apierrors.IsNotFound(err) && details != nil && details.Kind == "namespaces":
		return fmt.Sprintf("create namespace %q", details.Name)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nextRefused(outcome)
	}
	return nextRetry
}

// isLackOfRights reports whether an answer of the API server names a missing permission. Admission refuses objects with
// the same status.
func isLackOfRights(refusal apierrors.APIStatus) bool {
	err, ok := refusal.(error)
	return ok && object.IsLackOfRights(err)
}

// nextAdmission returns the action if admission, but no webhook, refuses an object.
func nextAdmission(outcome Outcome, message string) string {
	switch {
	case strings.Contains(message, exceededQuota):
		return nextQuota
	case strings.Contains(message, uncountedQuota):
		return nextRetry
	}
	return "no permission is missing: an admission rule of the cluster refuses the object; change the rule, or " + nextContent(outcome)
}

// nextCollision returns the action if one object of the extension blocks another.
func nextCollision(outcome Outcome, collision *object.CollisionError) string {
	if collision.Kept {
		return "if nothing needs it, delete it, or " + nextContent(outcome)
	}
	return nextContent(outcome)
}

// nextRefused returns the action if an object is invalid for the API server.
func nextRefused(outcome Outcome) string {
	refused, isOthers := errors.AsType[*object.RefusedError](outcome.Err)
	switch {
	case isOthers:
		return fmt.Sprintf("have %s leave out these fields, or remove them from the object; the controller retries automatically",
			object.NameManagers(refused.Managers))
	case outcome.Stage == StageRepair:
		return "undo what was changed in the object since it was installed; the controller retries automatically"
	}
	return "the API server refuses the object; " + nextContent(outcome)
}
