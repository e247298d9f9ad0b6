package controller

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// installMoved notices when another bundle, or none, is installed.
func installMoved() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isExtension := e.ObjectOld.(*ocv1.ClusterExtension)
			after, isStillExtension := e.ObjectNew.(*ocv1.ClusterExtension)
			return isExtension && isStillExtension &&
				(!equality.Semantic.DeepEqual(before.Status.Install, after.Status.Install) ||
					before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero())
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			before, isExtension := e.Object.(*ocv1.ClusterExtension)
			return isExtension && before.Status.Install != nil
		},
		CreateFunc: func(event.CreateEvent) bool { return false },
	}
}

// concernedBy matches the extensions that require the package of an extension, and
// the extensions that it requires itself, which report each other. Services of extensions in its
// namespace may select its pods.
func (r *Reconciler) concernedBy(ctx context.Context, object client.Object) match {
	moved, ok := object.(*ocv1.ClusterExtension)
	if !ok {
		return nobody
	}
	needs := newNeedsReader(ctx, r.Neighbours)
	required := needs(moved).Packages
	return func(ext *ocv1.ClusterExtension) bool {
		if ext.Name == moved.Name {
			return false
		}
		if ext.Annotations[ocv1.AdoptsContentOfAnnotation] == moved.Name {
			return true
		}
		its := needs(ext)
		return r.mayShare(ext, moved) || its.AnyPackage ||
			moved.Package() != "" && slices.Contains(its.Packages, moved.Package()) ||
			ext.Package() != "" && slices.Contains(required, ext.Package())
	}
}

func looksAtOthers(its requirement.Needs) bool {
	return its.AnyPackage || its.APIs || len(its.Packages) > 0
}

// newNeedsReader gives what matters to the requirements of an extension's
// package, in whatever catalog, and to the files of the bundle that it waits with.
func newNeedsReader(ctx context.Context, neighbours *Neighbours) func(*ocv1.ClusterExtension) requirement.Needs {
	return func(ext *ocv1.ClusterExtension) requirement.Needs {
		if ext.Package() == "" { // the files of its bundle alone say what it needs
			return neighbours.needsOfContent(ext.Name).needs
		}
		its, err := neighbours.needsOf(ctx, ext.Package())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing catalogs to find out whom to wake")
		}
		return its.With(neighbours.needsOfContent(ext.Name).needs)
	}
}
