package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Observed is the world as one pass sees it. Failures to read are values: what
// they mean is decided later.
type Observed struct {
	Installation    installation.State
	InstallationErr error

	// ServiceAccountErr says that the declared ServiceAccount cannot act.
	ServiceAccountErr error

	// Issuer is empty unless who issued certificates is gone.
	Issuer Issuer

	// Catalogs are those that the spec selects and that are available, sorted
	// by name.
	Catalogs    []resolve.Catalog
	CatalogsErr error

	// Unpolled are the names of those Catalogs whose tag is resolved only when their spec
	// changes, sorted.
	Unpolled []string

	// Reselects is set if the installed bundle is to be applied again with its next selection,
	// see [bundle.Selection.Next].
	Reselects bool

	// Named is what is known of the image that the spec names, if it names one.
	Named namedBundle

	// Surroundings are not read if there is a CatalogsErr.
	Surroundings Surroundings
}

// isKnown says that nothing but catalogs can be in the way of a choice.
func (o Observed) isKnown() bool {
	return o.isReadable() && o.CatalogsErr == nil
}

// isReadable says that what is installed is known, and that it can be read and written as
// the ServiceAccount.
func (o Observed) isReadable() bool { return o.InstallationErr == nil && o.ServiceAccountErr == nil }

// MissingServiceAccountError says that the declared ServiceAccount does not
// exist.
type MissingServiceAccountError struct {
	Namespace, Name string

	// NoNamespace says that the namespace does not exist either.
	NoNamespace bool
}

// Error is the message of the reference implementation, which makes no difference
// between what is missing.
func (e *MissingServiceAccountError) Error() string {
	return fmt.Sprintf("operation cannot proceed due to the following validation error(s): service account %q not found in namespace %q",
		e.Name, e.Namespace)
}

// UnreadableServiceAccountError says that it is not known whether the declared
// ServiceAccount exists.
type UnreadableServiceAccountError struct {
	Namespace, Name string
	Err             error
}

func (e *UnreadableServiceAccountError) Error() string {
	return fmt.Sprintf("operation cannot proceed due to the following validation error(s): error getting service account: %v", e.Err)
}

// Unwrap gives the cause.
func (e *UnreadableServiceAccountError) Unwrap() error { return e.Err }

// NotServedError reports that a catalog that an extension selects has no content yet.
type NotServedError struct {
	Catalog string

	// Stalled is the message of the condition Stalled of the catalog; empty if the controller still
	// pulls the catalog.
	Stalled string
}

// Error is the message of upstream operator-controller.
func (e *NotServedError) Error() string {
	return fmt.Sprintf("catalog %q is not being served", e.Catalog)
}

// whyStalled returns the message of the condition Stalled of catalog; empty if it is not stalled.
func whyStalled(catalog *ocv1.ClusterCatalog) string {
	if condition := meta.FindStatusCondition(catalog.Status.Conditions, ocv1.TypeStalled); condition != nil && condition.Status == metav1.ConditionTrue {
		return condition.Message
	}
	return ""
}

// observe does every read of a pass that does not depend on a bundle. All but
// the first look at an installation are answered from memory.
func (r *Reconciler) observe(ctx context.Context, wanted Wanted) Observed {
	defer r.measure(StageObserve)()
	var observed Observed
	observed.Installation, observed.InstallationErr = r.Releases.Observe(ctx, wanted.Owner)
	if !wanted.Suspended { // whose content is not touched
		if err := r.takeTurnIfSlow(ctx, wanted.Owner.Name); err != nil {
			observed.InstallationErr = err
		}
	}
	observed.ServiceAccountErr = r.serviceAccount(ctx, wanted.Owner)
	observed.Issuer = r.issuer(wanted.Owner.Name)
	observed.Reselects = observed.isReadable() && r.reselects(ctx, wanted, observed.Installation.Installed)
	observed.Named = r.namedBy(wanted, observed.Installation.Installed)
	r.observeOffers(ctx, wanted.of(observed.Installation.Installed), &observed)
	return observed
}

// observeOffers reads what there is to choose from, and the cluster that has to
// meet the requirements.
func (r *Reconciler) observeOffers(ctx context.Context, wanted Wanted, observed *Observed) {
	if wanted.Selector != nil {
		observed.Catalogs, observed.Unpolled, observed.CatalogsErr = r.catalogs(ctx, wanted.Selector, wanted.Request.Package)
	}
	if observed.CatalogsErr == nil {
		observed.Surroundings = r.surroundings(ctx, wanted, *observed)
	}
}

func (r *Reconciler) serviceAccount(ctx context.Context, owner object.Owner) error {
	key := types.NamespacedName{Namespace: owner.Namespace, Name: owner.ServiceAccount}
	err := r.Client.Get(ctx, key, &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		return &MissingServiceAccountError{Namespace: owner.Namespace, Name: owner.ServiceAccount, NoNamespace: LacksNamespace(r.Client)(ctx, owner.Namespace)}
	}
	if err != nil {
		return &UnreadableServiceAccountError{Namespace: owner.Namespace, Name: owner.ServiceAccount, Err: err}
	}
	return nil
}

// catalogs returns the catalogs that are available and selected, and the names of catalogs among
// them without a poll interval, both sorted. A label selector of the API server cannot choose them: the label with
// their name may be wrong.
func (r *Reconciler) catalogs(ctx context.Context, selector labels.Selector, pkg string) (catalogs []resolve.Catalog, unpolled []string, err error) {
	var list ocv1.ClusterCatalogList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("error walking catalogs: error listing catalogs: %w", err)
	}
	for i := range list.Items {
		catalog := &list.Items[i]
		if !isAvailable(catalog) || !selector.Matches(catalogLabels{catalog}) {
			continue
		}
		prepared, err := r.Catalogs.Package(catalog.Name, pkg)
		if err != nil && !isServing(catalog) {
			err = &NotServedError{Catalog: catalog.Name, Stalled: whyStalled(catalog)}
		}
		catalogs = append(catalogs, resolve.Catalog{
			Name: catalog.Name, Priority: catalog.Spec.Priority, Package: prepared, Err: err,
		})
		if isUnpolled(catalog) {
			unpolled = append(unpolled, catalog.Name)
		}
	}
	slices.SortFunc(catalogs, func(a, b resolve.Catalog) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(unpolled)
	return catalogs, unpolled, nil
}

// isAvailable is false for a catalog that is to be treated as if it did not
// exist.
func isAvailable(catalog *ocv1.ClusterCatalog) bool {
	return catalog.Spec.AvailabilityMode != ocv1.AvailabilityModeUnavailable && catalog.DeletionTimestamp.IsZero()
}

func isServing(catalog *ocv1.ClusterCatalog) bool {
	return meta.IsStatusConditionTrue(catalog.Status.Conditions, ocv1.TypeServing)
}
