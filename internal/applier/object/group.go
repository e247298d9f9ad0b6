package object

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelLocal is on the API services that the API server makes of what it serves itself. The
// value tells its own APIs from those of definitions, which come and go.
const (
	labelLocal   = "kube-aggregator.kubernetes.io/automanaged"
	localBuiltIn = "onstart"
)

// GroupOf is the API group of an API service, of which only the name is known. It is empty
// for the core group.
func GroupOf(registration string) string {
	_, group, _ := strings.Cut(registration, ".")
	return group
}

// GroupConflicts are the API services because of which an extension cannot register others of
// the same group, sorted: those of APIs that the API server serves itself, and those of other
// extensions. Of a group of several versions the cluster prefers one, and clients that name
// none use it: who registers one version may get the requests of all others. Mixed are groups
// in which the extension itself owns all definitions.
func GroupConflicts(owner Owner, wanted []Key, registered []metav1.PartialObjectMetadata, mixed func(group string) bool) []Conflict {
	first := map[string]Key{} // by group
	for _, key := range slices.SortedFunc(slices.Values(wanted), Key.Compare) {
		if _, known := first[GroupOf(key.Name)]; !known {
			first[GroupOf(key.Name)] = key
		}
	}
	var conflicts []Conflict
	for i := range registered {
		live := &registered[i]
		key := Key{GroupKind: APIServiceKind, Name: live.Name}
		another, sameGroup := first[GroupOf(live.Name)]
		if !sameGroup || slices.Contains(wanted, key) || owner.Has(live) {
			continue
		}
		holder := Holder{Deleted: live.DeletionTimestamp != nil, Finalizers: live.Finalizers}
		controller := metav1.GetControllerOfNoCopy(live)
		switch local := live.Labels[labelLocal]; {
		case controller != nil && controller.Kind == OwnerKind:
			holder.Kind, holder.Name = OwnerKind, controller.Name
		case local != "" && (local == localBuiltIn || !mixed(GroupOf(live.Name))):
			holder.Kind = kindAPIServer
		default:
			continue
		}
		conflicts = append(conflicts, Conflict{Object: key, Holder: holder, Another: another})
	}
	slices.SortFunc(conflicts, func(a, b Conflict) int { return a.Object.Compare(b.Object) })
	return conflicts
}
