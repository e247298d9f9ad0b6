package controller

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// LacksNamespace takes a namespace without any ServiceAccount for one that does not
// exist, or is being deleted: each has one called default from its first moment until its
// deletion begins. That needs no right to read namespaces, and no request to a cache.
func LacksNamespace(accounts client.Reader) func(ctx context.Context, namespace string) bool {
	return func(ctx context.Context, namespace string) bool {
		var list corev1.ServiceAccountList
		err := accounts.List(ctx, &list, client.InNamespace(namespace), client.Limit(1), client.UnsafeDisableDeepCopy)
		return err == nil && len(list.Items) == 0
	}
}

// missingNamespacesOf are those that an error is about.
func missingNamespacesOf(err error) []string {
	if missing, ok := errors.AsType[*object.MissingNamespacesError](err); ok {
		return missing.Namespaces
	}
	return nil
}

// noteNamespaces remembers for which namespaces an extension waits, besides the one that it is
// installed to. One that has appeared before this is not missed.
func (r *Reconciler) noteNamespaces(ctx context.Context, extension string, outcome Outcome) {
	missing := slices.Concat(missingNamespacesOf(outcome.Err), missingNamespacesOf(outcome.RepairErr))
	if len(missing) == 0 {
		r.missingNamespaces.Delete(extension)
		return
	}
	r.missingNamespaces.Store(extension, missing)
	isLacking := LacksNamespace(r.Client)
	if !slices.ContainsFunc(missing, func(namespace string) bool { return isLacking(ctx, namespace) }) {
		r.wake(extension)
	}
}

// awaitsNamespace says that an extension waits for a namespace.
func (r *Reconciler) awaitsNamespace(extension, namespace string) bool {
	known, _ := r.missingNamespaces.Load(extension)
	missing, _ := known.([]string)
	return slices.Contains(missing, namespace)
}
