package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// namespacesRetry is the time until a Namespace that blocks a deletion is read again. It is long because a read lists
// all kinds. namespacesFresh bounds the age of the result when the Namespace is deleted: others may have created objects
// since.
const (
	namespacesRetry = 2 * time.Minute
	namespacesFresh = 10 * time.Second
)

// mayDeleteNamespaces reports whether the deletion of an extension may delete Namespaces with the
// objects of others: the spec sets policy Delete, or the deletion keeps all objects.
func mayDeleteNamespaces(ext *ocv1.ClusterExtension, policy UninstallPolicy) bool {
	return policy == UninstallOrphan || ext.Spec.Uninstall != nil && ext.Spec.Uninstall.Policy == ocv1.UninstallPolicyDelete
}

// refuseNamespaces blocks a deletion as long as a Namespace that it would delete contains objects of
// others, or as that is unknown. That none does may be known from an earlier reconcile, since maxAge at the most.
func (r *Reconciler) refuseNamespaces(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, maxAge time.Duration) uninstallProgress {
	if mayDeleteNamespaces(ext, "") {
		return uninstallProgress{released: true}
	}
	uses, err := r.namespacesInUse(ctx, ext, wanted.Owner, maxAge)
	if err != nil {
		const advice = ". spec.uninstall.policy: Orphan keeps everything; Warning: Delete deletes everything. Retrying automatically"
		text := "deletion is refused, because it is unknown whether Namespaces would be deleted: " + err.Error()
		return r.blocked(ctx, wanted, excerpt.Line(text, maxText/2-len(advice))+advice, uninstallRetry)
	}
	text := namespacesText(uses)
	if text == "" {
		return uninstallProgress{released: true}
	}
	return r.blocked(ctx, wanted, text, namespacesRetry)
}

// namespaceUses contains the Namespaces that block a deletion, as found for one generation of the spec.
type namespaceUses struct {
	uid        types.UID
	generation int64
	at         time.Time
	uses       []installation.NamespaceUse
}

// isOf reports whether the uses are of this spec and count at a time: what blocks the deletion for [namespacesRetry], and that
// nothing does for maxAge.
func (u namespaceUses) isOf(ext *ocv1.ClusterExtension, now time.Time, maxAge time.Duration) bool {
	if namespacesText(u.uses) != "" {
		maxAge = namespacesRetry
	}
	return u.uid == ext.UID && u.generation == ext.Generation && !u.at.IsZero() && now.Before(u.at.Add(maxAge))
}

// namespacesInUse remembers what it has found.
func (r *Reconciler) namespacesInUse(ctx context.Context, ext *ocv1.ClusterExtension, owner object.Owner, maxAge time.Duration) ([]installation.NamespaceUse, error) {
	value, _ := r.namespaceUses.Load(ext.Name)
	if known, _ := value.(namespaceUses); known.isOf(ext, r.Now(), maxAge) {
		return known.uses, nil
	}
	r.namespaceUses.Delete(ext.Name)
	uses, err := inTime(ctx, owner, r.Uninstalls.NamespacesInUse)
	if err == nil {
		r.namespaceUses.Store(ext.Name, namespaceUses{uid: ext.UID, generation: ext.Generation, at: r.Now(), uses: uses})
	}
	return uses, err
}

// namespacesText names the Namespaces that block a deletion, and the actions; empty if none does.
func namespacesText(uses []installation.NamespaceUse) string {
	const keep = "spec.uninstall.policy: Orphan keeps everything"
	var used, unknown []string
	for _, use := range uses {
		switch {
		case use.Err != nil:
			unknown = append(unknown, use.Err.Error())
		case use.Count > 0:
			used = append(used, NamespaceText(use))
		}
	}
	var parts []string
	if len(used) > 0 {
		advice := ". Move or delete these objects. " + keep + "; Warning: Delete deletes them too. Retrying automatically"
		parts = append(parts, excerpt.Line("deletion is refused: "+strings.Join(used, "; "), maxText/2-len(advice))+advice)
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		advice := ". Give the ServiceAccount permission to list all kinds in the Namespace. " + keep + ". Retrying automatically"
		parts = append(parts, excerpt.Line("deletion is refused, because the content of a Namespace that would be deleted is unknown: "+
			strings.Join(unknown, "; "), maxText/2-len(advice))+advice)
	}
	return strings.Join(parts, "; ")
}

// NamespaceText names the objects in a Namespace that the extension does not own.
func NamespaceText(use installation.NamespaceUse) string {
	names := make([]string, 0, len(use.First))
	for _, key := range use.First {
		names = append(names, fmt.Sprintf("%s %q", key.Kind, key.Name))
	}
	text := fmt.Sprintf("Namespace %q contains %d %s that the extension does not own: %s",
		use.Namespace, use.Count, plural(use.Count, "object", "objects"), strings.Join(names, ", "))
	if more := use.Count - int64(len(names)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
