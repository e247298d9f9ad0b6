package controller

import (
	"context"
	"maps"
	"slices"
	"strings"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// residents maps namespaces and extensions to the names of the installed bundles.
type residents map[string]map[string]string

// take replaces the bundle of an extension.
func (r residents) take(ext *ocv1.ClusterExtension) {
	if ext.Status.Install == nil || !ext.DeletionTimestamp.IsZero() {
		return
	}
	namespace := ext.Spec.Namespace
	if r[namespace] == nil {
		r[namespace] = map[string]string{}
	}
	r[namespace][ext.Name] = ext.Status.Install.Bundle.Name
}

// drop removes an extension from every namespace: an extension of the same name may have been created
// again with another namespace.
func (r residents) drop(name string) {
	for namespace, bundles := range r {
		delete(bundles, name)
		if len(bundles) == 0 {
			delete(r, namespace)
		}
	}
}

// residents returns a text that changes with the other extensions of the namespace of owner and
// with their bundles; empty if there are none.
func (n *Neighbours) residents(ctx context.Context, owner object.Owner) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.update(ctx); err != nil {
		return "", err
	}
	var found strings.Builder
	bundles := n.homes[owner.Namespace]
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		if name != owner.Name {
			found.WriteString(name + "=" + bundles[name] + "\n")
		}
	}
	return found.String(), nil
}
