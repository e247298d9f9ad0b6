package charts_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The differences on purpose, as the first column of the table in docs/helm-charts.md names them.
const (
	onStatus       = "`status`, and `creationTimestamp: null`"
	onAnnotations  = "annotations of hooks on other objects, such as those in `crds/`"
	onTwice        = "the same object in two documents"
	onGenerateName = "`generateName`"
	onInvalid      = "objects that no API server accepts"
	onItems        = "`items` in other objects than lists"
	onHooks        = "hooks that cannot run as intended"
	onEmptyWords   = "empty words in annotations of hooks, such as in `\"pre-install,\"`"
	onSameName     = "hooks of the same name and kind in several namespaces"
	onRollback     = "hooks of a rollback"
	onKubeVersion  = "`kubeVersion`"
	onDependencies = "charts that a chart depends on"
	onSchemas      = "schemas that refer to other files"
	onRevision     = "`.Release.Revision`"
	onMinor        = "`.Capabilities.KubeVersion.Minor`"
	onSizes        = "sizes"
	onBounds       = "memory and time of a rendering"
	onArchives     = "links in an archive, and files beside the folder of the chart"
)

// reason explains why one side refuses a chart and the other one does not.
type reason struct {
	row string

	// text is part of our refusal, or of Helm's if byHelm is set.
	text   string
	byHelm bool

	// holds reports whether that is true of what the other side has made.
	holds func(made result) bool
}

var reasons = []reason{
	{row: onKubeVersion, text: "chart requires kubeVersion: ", byHelm: true, holds: always},
	{row: onTwice, text: " differs from the one in ", holds: hasTwice},
	{row: onGenerateName, text: " has no metadata.name", holds: some(func(object *unstructured.Unstructured) bool { return object.GetGenerateName() != "" })},
	{row: onInvalid, text: " has no metadata.name", holds: some(func(object *unstructured.Unstructured) bool { return object.GetName() == "" })},
	{row: onInvalid, text: " has no apiVersion", holds: some(func(object *unstructured.Unstructured) bool { return object.GetAPIVersion() == "" })},
	{row: onInvalid, text: "invalid name ", holds: some(hasInvalidName)},
	{row: onInvalid, text: ": its name is invalid: ", holds: some(hasInvalidName)},
	{row: onInvalid, text: "are not of version apiextensions.k8s.io/v1,", holds: some(func(object *unstructured.Unstructured) bool {
		return object.GetAPIVersion() == "apiextensions.k8s.io/v1beta1"
	})},
	{row: onHooks, text: ", which is no whole number", holds: someHook(func(one hookOf) bool { return one.weight == 0 })},
	{row: onHooks, text: "helm.sh/hook-delete-policy is ", holds: someHook(hasUnknownPolicy)},
	{row: onHooks, text: "helm.sh/hook is ", holds: always}, // Helm leaves the hook out
	{row: onHooks, text: "helm.sh/hook names no event", holds: always},
	{row: onHooks, text: "hooks that cannot be run: ", holds: func(made result) bool { return len(made.hooks) > 0 }},
	{row: onDependencies, text: "nothing is fetched for a chart", holds: always},
	{row: onSchemas, text: "nothing outside of a chart is read", holds: always},
	{row: onSizes, text: "more than 4096 documents", holds: func(made result) bool { return len(made.all()) > 4096 }},
}

// isTooMuch reports whether a rendering has come to a bound of its process.
func isTooMuch(refusal error) bool {
	return strings.Contains(refusal.Error(), ": rendering takes more than ") || strings.Contains(refusal.Error(), ": rendering comes to more than ")
}

// explanation returns the row of the difference on purpose for which one side alone refuses a chart;
// empty if there is none.
func explanation(want, got result) string {
	for _, known := range reasons {
		refusal, other := got.refusal, want
		if known.byHelm {
			refusal, other = want.refusal, got
		}
		if refusal != nil && strings.Contains(refusal.Error(), known.text) && known.holds(other) {
			return known.row
		}
	}
	return ""
}

func always(result) bool { return true }

// some reports whether a condition is true of an object or a hook.
func some(is func(*unstructured.Unstructured) bool) func(result) bool {
	return func(made result) bool { return slices.ContainsFunc(made.all(), is) }
}

func someHook(is func(hookOf) bool) func(result) bool {
	return func(made result) bool { return slices.ContainsFunc(made.hooks, is) }
}

// hasUnknownPolicy reports whether a hook has a delete policy that Helm ignores.
func hasUnknownPolicy(one hookOf) bool {
	known := texts([]release.HookDeletePolicy{release.HookBeforeHookCreation, release.HookSucceeded, release.HookFailed})
	return slices.ContainsFunc(one.policies, func(policy string) bool { return !slices.Contains(known, policy) })
}

// hasTwice reports whether two documents of one object differ.
func hasTwice(made result) bool {
	made = made.copied()
	made.place(usual().namespace)
	first := map[string]string{}
	for _, object := range made.objects {
		text := encoded(object.Object)
		if before, isThere := first[key(object)]; isThere && before != text {
			return true
		}
		first[key(object)] = text
	}
	return false
}

// hasInvalidName reports whether an API server refuses the name of an object.
func hasInvalidName(object *unstructured.Unstructured) bool {
	name := object.GetName()
	switch {
	case object.GetAPIVersion() == "v1" && object.GetKind() == "Service":
		return len(validation.IsDNS1123Label(name)) > 0
	case strings.HasPrefix(object.GetAPIVersion(), "rbac.authorization.k8s.io/"):
		return len(content.IsPathSegmentName(name)) > 0
	}
	return len(validation.IsDNS1123Subdomain(name)) > 0
}

// hookAnnotation matches the annotations of hooks.
var hookAnnotation = regexp.MustCompile(`^helm\.sh/hook(-.*)?$`)

// withoutOnPurpose returns what Helm has made, without what is left out on purpose.
func withoutOnPurpose(made result, namespace string) result {
	made = made.copied()
	for _, object := range made.all() {
		unstructured.RemoveNestedField(object.Object, "status")
	}
	for _, object := range made.objects {
		if created, isSet, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "creationTimestamp"); isSet && created == nil {
			unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		}
		withoutHookAnnotations(object)
	}
	for i, hook := range made.hooks {
		made.hooks[i].policies = withoutEmpty(hook.policies)
	}
	made.place(namespace)
	made.order = ordersOf(byNamespace(made.hooks))
	return made
}

// byNamespace returns hooks in the order of their kinds, as they are, and then of their namespaces.
func byNamespace(hooks []hookOf) []hookOf {
	rank := map[string]int{}
	for i, one := range slices.Backward(hooks) {
		rank[one.object.GetKind()] = i
	}
	hooks = slices.Clone(hooks)
	slices.SortStableFunc(hooks, func(a, b hookOf) int {
		return cmp.Or(cmp.Compare(rank[a.object.GetKind()], rank[b.object.GetKind()]), cmp.Compare(a.object.GetNamespace(), b.object.GetNamespace()))
	})
	return hooks
}

// withoutEmpty returns the policies that hold if empty words are ignored.
func withoutEmpty(policies []string) []string {
	policies = slices.DeleteFunc(slices.Clone(policies), func(policy string) bool { return policy == "" })
	if len(policies) == 0 {
		return []string{release.HookBeforeHookCreation.String()}
	}
	return policies
}

func withoutHookAnnotations(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	before := len(annotations)
	for name := range annotations {
		if hookAnnotation.MatchString(name) {
			delete(annotations, name)
		}
	}
	switch len(annotations) {
	case before:
	case 0:
		object.SetAnnotations(nil)
	default:
		object.SetAnnotations(annotations)
	}
}
