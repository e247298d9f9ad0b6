package hook

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Annotations of Helm that make an object a hook. The key of another one that Helm knows,
// for its output, begins with the first of these.
const (
	annotation         = "helm.sh/hook"
	annotationWeight   = "helm.sh/hook-weight"
	annotationPolicies = "helm.sh/hook-delete-policy"
)

// Event is when a hook runs.
type Event string

// The events of Helm at which hooks run.
const (
	PreInstall  Event = "pre-install"
	PostInstall Event = "post-install"
	PreUpgrade  Event = "pre-upgrade"
	PostUpgrade Event = "post-upgrade"
	PreDelete   Event = "pre-delete"
	PostDelete  Event = "post-delete"
	Test        Event = "test"
)

// Events of Helm at which nothing runs: nobody rolls back.
const (
	preRollback  Event = "pre-rollback"
	postRollback Event = "post-rollback"
)

// testSuccess is what tests were called in charts of an earlier Helm.
const testSuccess Event = "test-success"

var events = []Event{PreInstall, PostInstall, PreUpgrade, PostUpgrade, PreDelete, PostDelete, preRollback, postRollback, Test}

// Policy is when a hook is deleted.
type Policy string

// The policies of Helm. A hook without any has BeforeCreation.
const (
	BeforeCreation Policy = "before-hook-creation"
	Succeeded      Policy = "hook-succeeded"
	Failed         Policy = "hook-failed"
)

var policies = []Policy{BeforeCreation, Succeeded, Failed}

// Hook is an object that runs at events.
type Hook struct {
	// Object is as its chart has it, with its annotations.
	Object *unstructured.Unstructured

	// Events and Policies are sorted, each once. Events at which nothing runs are left out, so
	// that there may be none.
	Events   []Event
	Policies []Policy

	// Weight puts hooks of an event in order.
	Weight int
}

// Is says that an object is a hook, of whatever events.
func Is(annotations map[string]string) bool {
	_, isSet := annotations[annotation]
	return isSet
}

// Of reads what the annotations of a hook say. It fails for what this package does not know:
// a hook that Helm would leave out without a word.
func Of(object *unstructured.Unstructured) (Hook, error) {
	said := object.GetAnnotations()
	found, names := Hook{Object: object}, 0
	for word := range words(said[annotation]) {
		names++
		event := Event(word)
		if event == testSuccess {
			event = Test
		}
		if !slices.Contains(events, event) {
			return Hook{}, fmt.Errorf("%s is %s, which is no event of Helm: there are %s", annotation, excerpt.Quote(word), joined(events))
		}
		if event != preRollback && event != postRollback {
			found.Events = append(found.Events, event)
		}
	}
	if names == 0 {
		return Hook{}, fmt.Errorf("%s names no event", annotation)
	}
	for word := range words(said[annotationPolicies]) {
		if !slices.Contains(policies, Policy(word)) {
			return Hook{}, fmt.Errorf("%s is %s: there are %s", annotationPolicies, excerpt.Quote(word), joined(policies))
		}
		found.Policies = append(found.Policies, Policy(word))
	}
	if len(found.Policies) == 0 {
		found.Policies = []Policy{BeforeCreation}
	}
	if text := said[annotationWeight]; text != "" {
		weight, err := strconv.Atoi(text)
		if err != nil {
			return Hook{}, fmt.Errorf("%s is %s, which is no whole number", annotationWeight, excerpt.Quote(text))
		}
		found.Weight = weight
	}
	found.Events, found.Policies = sortedOnce(found.Events), sortedOnce(found.Policies)
	return found, nil
}

// words are those between commas, in the small letters that Helm reads them as.
func words(list string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for word := range strings.SplitSeq(list, ",") {
			if word = strings.ToLower(strings.TrimSpace(word)); word != "" && !yield(word) {
				return
			}
		}
	}
}

func joined[T ~string](known []T) string {
	texts := make([]string, len(known))
	for i, one := range known {
		texts[i] = string(one)
	}
	return strings.Join(texts, ", ")
}

func sortedOnce[T cmp.Ordered](values []T) []T {
	slices.Sort(values)
	return slices.Compact(values)
}

// Runs says that a hook runs at an event.
func (h Hook) Runs(event Event) bool { return slices.Contains(h.Events, event) }

// HasPolicy says that a hook is to be deleted by a policy.
func (h Hook) HasPolicy(policy Policy) bool { return slices.Contains(h.Policies, policy) }

// IsTest says that a hook runs for nothing but tests, which somebody runs who wants to.
func (h Hook) IsTest() bool { return len(h.Events) == 1 && h.Events[0] == Test }

// IsForInstallation reports whether a hook runs when its extension is installed, and at nothing else.
func (h Hook) IsForInstallation() bool {
	return h.runsByItself() && !slices.ContainsFunc(h.Events, func(event Event) bool {
		return event != PreInstall && event != PostInstall && event != Test
	})
}

// IsForDeletion says that a hook runs when its extension is deleted, and by itself at nothing else.
func (h Hook) IsForDeletion() bool {
	return h.runsByItself() && !slices.ContainsFunc(h.Events, func(event Event) bool {
		return event != PreDelete && event != PostDelete && event != Test
	})
}

// runsByItself says that a hook runs without anybody asking for it.
func (h Hook) runsByItself() bool { return len(h.Events) > 0 && !h.IsTest() }

// WithoutTests gives the hooks that run without anybody asking for them.
func WithoutTests(hooks []Hook) []Hook {
	return slices.DeleteFunc(slices.Clone(hooks), func(one Hook) bool { return !one.runsByItself() })
}

// Objects are those of hooks.
func Objects(hooks []Hook) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, len(hooks))
	for i, one := range hooks {
		objects[i] = one.Object
	}
	return objects
}

// All reads the hooks of objects that have been read before.
func All(objects []*unstructured.Unstructured) ([]Hook, error) {
	hooks := make([]Hook, 0, len(objects))
	for _, object := range objects {
		one, err := Of(object)
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, one)
	}
	return hooks, nil
}

// At gives the hooks of an event in the order in which Helm runs them: by weight, then by name,
// then by kind.
func At(event Event, hooks []Hook) []Hook {
	var found []Hook
	for _, one := range hooks {
		if one.Runs(event) {
			found = append(found, one)
		}
	}
	slices.SortStableFunc(found, func(a, b Hook) int {
		return cmp.Or(
			cmp.Compare(a.Weight, b.Weight),
			cmp.Compare(a.Object.GetName(), b.Object.GetName()),
			cmp.Compare(rankOf(a.Object.GetKind()), rankOf(b.Object.GetKind())),
			cmp.Compare(a.Object.GetKind(), b.Object.GetKind()),
			cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()),
		)
	})
	return found
}

// rankOf is the place of a kind where Helm installs; those that it does not know come last.
func rankOf(kind string) int {
	if rank := slices.Index(releaseutil.InstallOrder, kind); rank >= 0 {
		return rank
	}
	return len(releaseutil.InstallOrder)
}

// The kinds that are waited for, as by Helm. Of all others a run ends when they are there.
var (
	jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind = schema.GroupKind{Kind: "Pod"}
)

// IsAwaited says that a run of an object ends later than it is created.
func IsAwaited(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind().GroupKind()
	return kind == jobKind || kind == podKind
}
