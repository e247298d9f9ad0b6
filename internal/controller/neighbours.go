package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Neighbours knows what is installed by all extensions, so that a pass over one looks at
// those alone that can matter to it. It is safe for concurrent use.
//
// Once it is followed, all changes to extensions and catalogs are noted, and what has
// changed is read again when it is asked for next. Until then everything is.
type Neighbours struct {
	client   client.Reader
	catalogs Catalogs

	mu       sync.Mutex
	followed bool
	// expired says that everything is to be read again, and stale which extensions are.
	expired bool
	stale   sets.Set[string]

	listed []ocv1.ClusterCatalog // sorted by name
	roster roster
	homes  residents
	// needs are those of the packages that were asked for.
	needs map[string]requirement.Needs

	// ofContent has what extensions wait for by the files of their bundles.
	ofContent sync.Map
}

// NewNeighbours reads from memory only if the reader does.
func NewNeighbours(reader client.Reader, catalogs Catalogs) *Neighbours {
	return &Neighbours{client: reader, catalogs: catalogs, expired: true, stale: sets.New[string]()}
}

// follow says that all changes are noted from now on.
func (n *Neighbours) follow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.followed = true
}

// noted lets through whatever happens to extensions, and notes it before anybody is
// woken for it.
func (n *Neighbours) noted() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(extension client.Object) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.stale.Insert(extension.GetName())
		return true
	})
}

// expire is for catalogs that have come, gone, or have other labels or content.
func (n *Neighbours) expire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.expired = true
}

// concerning gives the neighbours of an extension that can matter to it, each sorted by
// name: those that its own bundles look at, and those whose requirements look at it.
func (n *Neighbours) concerning(ctx context.Context, c concern) (others, requirers []Neighbour, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.update(ctx); err != nil {
		return nil, nil, err
	}
	others, requirers = n.roster.concerning(c)
	return others, requirers, nil
}

// needsOf says what matters to the bundles of a package, in whatever catalog.
func (n *Neighbours) needsOf(ctx context.Context, pkg string) (requirement.Needs, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.update(ctx); err != nil {
		return requirement.Needs{}, err
	}
	its, known := n.needs[pkg]
	if !known {
		var catalogs []resolve.Catalog
		for i := range n.listed {
			if prepared, err := n.catalogs.Package(n.listed[i].Name, pkg); err == nil {
				catalogs = append(catalogs, resolve.Catalog{Package: prepared})
			}
		}
		its = needsOf(catalogs)
		n.needs[pkg] = its
	}
	return its, nil
}

// update reads what has changed.
func (n *Neighbours) update(ctx context.Context) error {
	if !n.followed || n.expired {
		return n.readAll(ctx)
	}
	for name := range n.stale {
		ext := &ocv1.ClusterExtension{}
		err := n.client.Get(ctx, types.NamespacedName{Name: name}, ext, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("error reading ClusterExtension %q: %w", name, err)
		}
		n.roster.drop(name)
		n.homes.drop(name)
		if !apierrors.IsNotFound(err) {
			n.take(ext)
		}
		n.stale.Delete(name)
	}
	return nil
}

func (n *Neighbours) readAll(ctx context.Context) error {
	var extensions ocv1.ClusterExtensionList
	if err := n.client.List(ctx, &extensions, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("error listing ClusterExtensions: %w", err)
	}
	var catalogs ocv1.ClusterCatalogList
	if err := n.client.List(ctx, &catalogs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("error walking catalogs: error listing catalogs: %w", err)
	}
	slices.SortFunc(catalogs.Items, func(a, b ocv1.ClusterCatalog) int { return cmp.Compare(a.Name, b.Name) })
	n.listed, n.roster, n.homes, n.needs = catalogs.Items, newRoster(), residents{}, map[string]requirement.Needs{}
	for i := range extensions.Items {
		n.take(&extensions.Items[i])
	}
	n.expired = false
	clear(n.stale)
	return nil
}

// take passes over an extension that has nothing installed, or soon will not have.
func (n *Neighbours) take(ext *ocv1.ClusterExtension) {
	n.homes.take(ext)
	if ext.Status.Install == nil || ext.Package() == "" || !ext.DeletionTimestamp.IsZero() {
		return
	}
	neighbour := Neighbour{Name: ext.Name, Bundle: installedIdentity(ext)}
	if prepared := n.knowing(neighbour.Bundle, ext.Spec.Source.Catalog); prepared != nil {
		facts, required := prepared.Stated(neighbour.Bundle.Name)
		neighbour.Properties, neighbour.Requirements = facts.Properties, required
	}
	n.roster.add(neighbour)
}

// knowing gives the package of the first catalog that states something of a bundle;
// nil if none does. Catalogs that the filter selects go before all others, which
// would otherwise speak for them. Nearly always there is one, and no need to ask.
func (n *Neighbours) knowing(of bundle.Identity, filter *ocv1.CatalogFilter) *resolve.Prepared {
	var first *ocv1.ClusterCatalog
	var found *resolve.Prepared
	for i := range n.listed {
		catalog := &n.listed[i]
		prepared, err := n.catalogs.Package(catalog.Name, of.Package)
		if err != nil || prepared == nil {
			continue
		}
		if facts, _ := prepared.Stated(of.Name); facts == nil {
			continue
		}
		switch {
		case found == nil:
			first, found = catalog, prepared
		case selects(filter, first):
			return found
		case selects(filter, catalog):
			return prepared
		}
	}
	return found
}

// installedIdentity is what the status of an extension says is installed.
func installedIdentity(ext *ocv1.ClusterExtension) bundle.Identity {
	return bundle.Identity{
		Package: ext.Package(),
		Name:    ext.Status.Install.Bundle.Name,
		Version: ext.Status.Install.Bundle.Version,
	}
}
