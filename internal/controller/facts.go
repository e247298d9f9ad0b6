package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Neighbour is another extension with a bundle installed.
type Neighbour struct {
	Name   string
	Bundle bundle.Identity

	// Properties of the bundle, and what it requires, as catalogs have them.
	Properties   []*requirement.Property
	Requirements requirement.List
}

func (n Neighbour) isDemanding() bool { return !n.Requirements.Empty() }

// Surroundings are the facts about a cluster that requirements of bundles are
// held against.
type Surroundings struct {
	Kubernetes, OpenShift string

	// Serves and APIsErr are set only if somebody requires an API.
	Serves  func(requirement.API) bool
	APIsErr error

	// Neighbours are sorted by name. There are none if they are not known, which
	// NeighboursErr says.
	Neighbours    []Neighbour
	NeighboursErr error
}

// cluster is what the requirements of bundles are checked against.
func (s Surroundings) cluster() *requirement.Cluster {
	cluster := &requirement.Cluster{
		Kubernetes: s.Kubernetes,
		OpenShift:  s.OpenShift,
		Serves:     s.Serves,
		APIsErr:    s.APIsErr,

		ExtensionsErr: s.NeighboursErr,
	}
	for _, n := range s.Neighbours {
		cluster.Extensions = append(cluster.Extensions, requirement.Extension{
			Name: n.Name, Package: n.Bundle.Package, Version: n.Bundle.Version, Properties: n.Properties,
		})
	}
	return cluster
}

// surroundings reads from memory only. What cannot be read is not known, which
// matters to those alone who require it. It asks for the APIs of the cluster only
// if they matter, because they are watched from then on.
func (r *Reconciler) surroundings(ctx context.Context, name string, needs requirement.Needs) Surroundings {
	s := Surroundings{Kubernetes: r.Platform.Kubernetes(), OpenShift: r.Platform.OpenShift()}
	s.Neighbours, s.NeighboursErr = r.neighbours(ctx, name)
	asked := slices.ContainsFunc(s.Neighbours, func(n Neighbour) bool { return n.Requirements.Needs().APIs })
	if needs.APIs || asked {
		s.readAPIs(r.Platform)
	}
	return s
}

func (s *Surroundings) readAPIs(platform Platform) {
	serves, err := platform.APIs()
	if err != nil {
		s.APIsErr = err
		return
	}
	s.Serves = func(api requirement.API) bool { return serves(api.Group, api.Version, api.Kind) }
}

// neighbours are all extensions with a bundle installed but the named one.
func (r *Reconciler) neighbours(ctx context.Context, name string) ([]Neighbour, error) {
	var extensions ocv1.ClusterExtensionList
	if err := r.Client.List(ctx, &extensions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("error listing ClusterExtensions: %w", err)
	}
	var catalogs ocv1.ClusterCatalogList
	if err := r.Client.List(ctx, &catalogs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("error walking catalogs: error listing catalogs: %w", err)
	}
	slices.SortFunc(catalogs.Items, func(a, b ocv1.ClusterCatalog) int { return cmp.Compare(a.Name, b.Name) })
	var neighbours []Neighbour
	for i := range extensions.Items {
		ext := &extensions.Items[i]
		if ext.Name == name {
			continue
		}
		if found, ok := r.neighbour(ext, catalogs.Items); ok {
			neighbours = append(neighbours, found)
		}
	}
	slices.SortFunc(neighbours, func(a, b Neighbour) int { return cmp.Compare(a.Name, b.Name) })
	return neighbours, nil
}

// neighbour is false for an extension that has nothing installed, or soon will
// not have. The catalogs are sorted by name.
func (r *Reconciler) neighbour(ext *ocv1.ClusterExtension, catalogs []ocv1.ClusterCatalog) (Neighbour, bool) {
	if ext.Status.Install == nil || ext.Spec.Source.Catalog == nil || !ext.DeletionTimestamp.IsZero() {
		return Neighbour{}, false
	}
	n := Neighbour{Name: ext.Name, Bundle: installedIdentity(ext)}
	if prepared := r.knowing(n.Bundle, ext.Spec.Source.Catalog, catalogs); prepared != nil {
		facts, required := prepared.Stated(n.Bundle.Name)
		n.Properties, n.Requirements = facts.Properties, required
	}
	return n, true
}

// knowing gives the package of the first catalog that states something of a bundle;
// nil if none does. Catalogs that the filter selects go before all others, which
// would otherwise speak for them. Nearly always there is one, and no need to ask.
func (r *Reconciler) knowing(of bundle.Identity, filter *ocv1.CatalogFilter, catalogs []ocv1.ClusterCatalog) *resolve.Prepared {
	var first *ocv1.ClusterCatalog
	var found *resolve.Prepared
	for i := range catalogs {
		prepared, err := r.Catalogs.Package(catalogs[i].Name, of.Package)
		if err != nil || prepared == nil {
			continue
		}
		if facts, _ := prepared.Stated(of.Name); facts == nil {
			continue
		}
		switch {
		case found == nil:
			first, found = &catalogs[i], prepared
		case selects(filter, first):
			return found
		case selects(filter, &catalogs[i]):
			return prepared
		}
	}
	return found
}

// installedIdentity is what the status of an extension says is installed.
func installedIdentity(ext *ocv1.ClusterExtension) bundle.Identity {
	return bundle.Identity{
		Package: ext.Spec.Source.Catalog.PackageName,
		Name:    ext.Status.Install.Bundle.Name,
		Version: ext.Status.Install.Bundle.Version,
	}
}

// needsOf says what matters to any bundle that the catalogs offer.
func needsOf(catalogs []resolve.Catalog) requirement.Needs {
	var all requirement.Needs
	for _, catalog := range catalogs {
		if catalog.Package != nil {
			all = all.With(catalog.Package.Needs())
		}
	}
	return all
}

// UnmetError says that the cluster lacks what only the content of a bundle
// states that it requires.
type UnmetError struct{ Unmet []requirement.Unmet }

func (e *UnmetError) Error() string {
	texts := make([]string, len(e.Unmet))
	for i, unmet := range e.Unmet {
		texts[i] = unmet.Text
	}
	return "the bundle " + strings.Join(texts, "; ")
}

// runsOn checks the version of Kubernetes once more: catalogs that were made
// without the metadata of bundles do not have it.
func runsOn(surroundings Surroundings, content *bundle.Bundle) error {
	list := requirement.Parse(nil, content.CSV.Spec.MinKubeVersion)
	if unmet := requirement.NewChecker(*surroundings.cluster()).Check(list).Unmet; len(unmet) > 0 {
		return &UnmetError{Unmet: unmet}
	}
	return nil
}
