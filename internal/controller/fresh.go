package controller

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Users apply an extension together with its namespace, its ServiceAccount and their permissions. The caches
// of the controller and of the API server can lack these for a moment. For freshWait after a change of the
// spec, the controller does not report that one of them is missing. It checks again every freshInterval.
const (
	freshWait     = 2 * time.Second
	freshInterval = time.Second
)

// freshSpec is a generation of a spec whose prerequisites were missing since a time.
type freshSpec struct {
	extension  types.UID
	generation int64
	since      time.Time
}

// awaitsFresh returns the time until the next check of missing prerequisites; zero if outcome has to be reported.
func (r *Reconciler) awaitsFresh(ext *ocv1.ClusterExtension, outcome Outcome) time.Duration {
	known, _ := r.fresh.Load(ext.Name)
	seen, _ := known.(freshSpec)
	isNew := ext.Status.ObservedGeneration != ext.Generation
	if seen.extension != ext.UID || seen.generation != ext.Generation {
		seen = freshSpec{extension: ext.UID, generation: ext.Generation, since: r.Now()}
	} else {
		isNew = true // progress of this spec can have been reported since
	}
	if !isNew || !lacksPrerequisite(outcome) {
		r.fresh.Delete(ext.Name)
		return 0
	}
	r.fresh.Store(ext.Name, seen)
	if r.Now().Sub(seen.since) >= freshWait {
		return 0
	}
	return freshInterval
}

// lacksPrerequisite reports whether nothing was written because a namespace, the ServiceAccount or a
// permission of it seems to be missing.
func lacksPrerequisite(outcome Outcome) bool {
	var (
		noAccount   *MissingServiceAccountError
		noNamespace *object.MissingNamespacesError
	)
	err := outcome.Err
	isMissing := errors.As(err, &noAccount) || errors.As(err, &noNamespace) || lacksRights(err)
	return isMissing && !outcome.Began && outcome.RepairErr == nil
}
