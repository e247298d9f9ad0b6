package preflight

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// replaceable are the kinds whose objects may be deleted and created again, if the
// user agrees, when a field of them cannot be changed. All that such an object holds
// is in the bundle, or made anew by the cluster. Never among them are kinds that hold
// what nobody could bring back: definitions, namespaces, volumes, Secrets.
var replaceable = []schema.GroupKind{
	{Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "batch", Kind: "Job"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	{Group: "storage.k8s.io", Kind: "StorageClass"},
	{Group: "", Kind: "Service"},
}

// Replaceable are the kinds of these names that may be replaced, in the order of
// the names. Others are left out.
func Replaceable[N ~string](names []N) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, name := range names {
		i := slices.IndexFunc(replaceable, func(kind schema.GroupKind) bool { return kind.Kind == string(name) })
		if i >= 0 {
			kinds = append(kinds, replaceable[i])
		}
	}
	return kinds
}

// ImmutableError says that an object cannot become what is wanted, as fields of it
// cannot be changed. The same would come of trying again.
type ImmutableError struct {
	Kind schema.GroupKind

	// Fields are sorted, and never empty.
	Fields []string

	// Held is what would be lost with the object; empty for nothing.
	Held string

	// Err is what the API server said.
	Err error
}

func (e *ImmutableError) Error() string {
	refusal := fmt.Sprintf("%s cannot be changed", strings.Join(e.Fields, ", "))
	remedy := fmt.Sprintf("delete the %s, so that it is created again", e.Kind.Kind)
	switch {
	case e.Held != "":
		return fmt.Sprintf("%s; %s, and with it goes %s", refusal, remedy, e.Held)
	case slices.Contains(replaceable, e.Kind):
		return fmt.Sprintf("%s; %s, or add %q to spec.install.replaceImmutable", refusal, remedy, e.Kind.Kind)
	default:
		return fmt.Sprintf("%s; if what it holds is not needed, %s", refusal, remedy)
	}
}

// Unwrap gives what the API server said.
func (e *ImmutableError) Unwrap() error { return e.Err }

// fixed are the words in which the API server says that a field cannot be changed.
// There is no reason or cause of its own for it.
var fixed = regexp.MustCompile(`(?i)\bimmutable\b` + // most fields
	`|may not (be changed|change once set|change fields other than|be modified)` + // addresses of Services, PriorityClasses, Pods
	`|cannot change roleRef` + // bindings
	`|updates to .* are forbidden`) // StatefulSets, StorageClasses

// Immutable finds out whether the API server has refused a change to a live object
// of a kind because fields of it cannot be changed; nil if that is not why.
func Immutable(kind schema.GroupKind, live *unstructured.Unstructured, refusal error) *ImmutableError {
	status := apierrors.APIStatus(nil)
	if live == nil || !apierrors.IsInvalid(refusal) || !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if fixed.MatchString(cause.Message) {
			fields = append(fields, cause.Field)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	return &ImmutableError{Kind: kind, Fields: slices.Compact(fields), Held: heldBy(kind, live), Err: refusal}
}

// heldBy is what would be lost with an object of a kind that can be replaced.
func heldBy(kind schema.GroupKind, live *unstructured.Unstructured) string {
	if kind != (schema.GroupKind{Group: "apps", Kind: "StatefulSet"}) {
		return ""
	}
	policy, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	if policy != "Delete" {
		return ""
	}
	return "what its volumes hold (spec.persistentVolumeClaimRetentionPolicy.whenDeleted is Delete)"
}

// MayReplace says whether the object may be deleted and created again, if the user
// agrees to that for some kinds.
func (e *ImmutableError) MayReplace(agreed []schema.GroupKind) bool {
	return e.Held == "" && slices.Contains(agreed, e.Kind) && slices.Contains(replaceable, e.Kind)
}
