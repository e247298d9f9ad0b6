// Package leadership reports that no controller holds the lease of the leader. Without a leader, status is
// out of date and deletions wait, and nothing else on a cluster reports that.
package leadership

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Lock is the name of the lease. Upstream operator-controller uses the same name, so that the two never act on
// one cluster at the same time.
const Lock = "9c4404e7.operatorframework.io"

// Confirmation is the time without a change after which a lease counts as abandoned: the leader renews it
// about once a second, and the clock of the reader can be wrong.
const Confirmation = 3 * time.Second

// defaultDuration is the duration of a lease that does not contain one.
const defaultDuration = 15 * time.Second

// Watcher reads the lease.
type Watcher struct {
	API coordinationclient.LeasesGetter

	// Namespace contains the lease. It is needed if the user may not list leases of all namespaces. A lease in it takes
	// precedence over those of other namespaces, in which tenants may create leases.
	Namespace string

	Now func() time.Time
}

// Absence waits for [Confirmation] if the lease seems to be abandoned. It returns why no controller is the
// leader; empty if one is, or if that is unknown: the user may not read the lease, or there is none, as with
// a controller that runs without leader election.
func (w Watcher) Absence(ctx context.Context) string {
	before := w.Look(ctx)
	if !before.isAbandoned() {
		return ""
	}
	select {
	case <-ctx.Done():
		return ""
	case <-time.After(Confirmation):
	}
	return w.Look(ctx).Since(before)
}

// Look is the lease as it was seen at one time.
type Look struct {
	leases []coordinationv1.Lease
	at     time.Time
}

// Look reads the lease; nothing if the user may not read it.
func (w Watcher) Look(ctx context.Context) Look {
	found, err := w.API.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, Lock).String(),
	})
	if err == nil {
		isOthers := func(lease coordinationv1.Lease) bool { return lease.Namespace != w.Namespace }
		if own := slices.DeleteFunc(slices.Clone(found.Items), isOthers); len(own) > 0 {
			return Look{leases: own, at: w.Now()}
		}
		return Look{leases: found.Items, at: w.Now()}
	}
	if !apierrors.IsForbidden(err) {
		return Look{}
	}
	lease, err := w.API.Leases(w.Namespace).Get(ctx, Lock, metav1.GetOptions{})
	if err != nil {
		return Look{}
	}
	return Look{leases: []coordinationv1.Lease{*lease}, at: w.Now()}
}

// Since compares two looks, and returns why no controller is the leader; empty if one is, or if that is unknown.
func (l Look) Since(before Look) string {
	if !l.isAbandoned() || !before.isAbandoned() {
		return ""
	}
	seen := map[types.UID]string{}
	for i := range before.leases {
		seen[before.leases[i].UID] = before.leases[i].ResourceVersion
	}
	for i := range l.leases {
		if version, isKnown := seen[l.leases[i].UID]; !isKnown || version != l.leases[i].ResourceVersion {
			return ""
		}
	}
	last := slices.MaxFunc(l.leases, func(a, b coordinationv1.Lease) int { return renewed(a).Compare(renewed(b)) })
	return absenceText(last, l.at)
}

// isAbandoned reports whether there is a lease, and no lease has a holder.
func (l Look) isAbandoned() bool {
	return len(l.leases) > 0 && !slices.ContainsFunc(l.leases, func(lease coordinationv1.Lease) bool { return isHeld(lease, l.at) })
}

func isHeld(lease coordinationv1.Lease, now time.Time) bool {
	duration := defaultDuration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		duration = time.Duration(*seconds) * time.Second
	}
	holder := lease.Spec.HolderIdentity
	return holder != nil && *holder != "" && now.Before(renewed(lease).Add(duration))
}

func renewed(lease coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return lease.CreationTimestamp.Time
	}
	return lease.Spec.RenewTime.Time
}

func absenceText(lease coordinationv1.Lease, now time.Time) string {
	ago := max(now.Sub(renewed(lease)), 0).Truncate(time.Second)
	return fmt.Sprintf("no controller is running: lease %q in namespace %q was last renewed %s ago. The status of extensions and catalogs is out of date, "+
		"and nothing is installed, upgraded, repaired or deleted. Start the controller: kubectl -n %s get deployments,pods shows why it does not run",
		lease.Name, lease.Namespace, ago, lease.Namespace)
}
