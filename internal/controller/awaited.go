package controller

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// catalogsTimeout is for how long extensions wait quietly after the controller has begun to
// act: for catalogs, of which status says that they are served, and for what the cluster
// serves. Both mostly come within seconds: what could be said of an extension until then
// would be taken back at once.
const catalogsTimeout = 2 * time.Minute

// textAwaitsAPIs is for what the bundles of catalogs require, or the files of a bundle.
const textAwaitsAPIs = "waits for the APIs of the cluster, which are being read"

// acting gives the time since the first pass over any extension.
func (r *Reconciler) acting() time.Duration {
	now := r.Now()
	r.began.CompareAndSwap(nil, &now)
	return now.Sub(*r.began.Load())
}

// awaits is what it is too early to choose without; empty if nothing is.
func (r *Reconciler) awaits(ctx context.Context, wanted Wanted, observed Observed) string {
	switch {
	case wanted.Selector == nil || r.acting() >= catalogsTimeout:
		return ""
	case isNotYet(observed.Surroundings.APIsErr):
		return textAwaitsAPIs
	case r.awaitsCatalogs(ctx, wanted, observed):
		return "waits for the content of catalogs, which is being read"
	}
	return ""
}

// awaitsCatalogs says whether the content of a catalog that matters to an extension is
// served, as its status says, and was not read yet: of one that is selected or, if bundles
// look at other extensions, of any.
func (r *Reconciler) awaitsCatalogs(ctx context.Context, wanted Wanted, observed Observed) bool {
	var list ocv1.ClusterCatalogList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return false // said by whoever chooses among catalogs
	}
	ofAny := looksAtOthers(needsOf(observed.Catalogs))
	for i := range list.Items {
		catalog := &list.Items[i]
		if (ofAny || wanted.Selector.Matches(catalogLabels{catalog})) && r.isBeingRead(catalog, wanted.Request.Package) {
			return true
		}
	}
	return false
}

// isBeingRead says that the content of a catalog is served, as its status says, and that a package
// of it was not read yet. One that is not served may never be.
func (r *Reconciler) isBeingRead(catalog *ocv1.ClusterCatalog, pkg string) bool {
	if _, served := sourceOf(catalog); !served || !isAvailable(catalog) {
		return false
	}
	_, err := r.Catalogs.Package(catalog.Name, pkg)
	return isNotYet(err)
}

func isNotYet(err error) bool {
	var says interface{ NotYet() bool }
	return errors.As(err, &says) && says.NotYet()
}

// await ends a pass for which it is too early to choose. What is installed is kept, and
// repaired, all the same.
func (r *Reconciler) await(ctx context.Context, wanted Wanted, outcome *Outcome, announced *announcement, what string) {
	outcome.Target.Action = Keep
	outcome.Stage, outcome.Err = "", nil
	r.keep(ctx, wanted, outcome)
	if outcome.RepairErr != nil {
		return
	}
	outcome.Waiting = true
	// Zero would mean never.
	outcome.RecheckAfter = sooner(outcome.RecheckAfter, max(catalogsTimeout-r.acting(), time.Millisecond))
	announced.awaiting(ctx, *outcome, what)
}
