package controller

import (
	"context"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Surroundings are the facts about a cluster that requirements of bundles are
// held against.
type Surroundings struct {
	Kubernetes, OpenShift string

	// Serves and APIsErr are set only if somebody requires an API.
	Serves  func(requirement.API) bool
	APIsErr error

	// Neighbours are those that can matter, and Requirers those to which the extension
	// can matter, both sorted by name. There are none if they are not known, which
	// NeighboursErr says.
	Neighbours, Requirers []Neighbour
	NeighboursErr         error
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
func (r *Reconciler) surroundings(ctx context.Context, wanted Wanted, observed Observed) Surroundings {
	given := newAnswers(r.Platform)
	r.answers.Store(wanted.Owner.Name, given)
	s := Surroundings{Kubernetes: given.kubernetes, OpenShift: given.openShift}
	c := concern{extension: wanted.Owner.Name, pkg: wanted.Request.Package, needs: needsOf(observed.Catalogs)}
	if installed := observed.Installation.Installed; installed != nil {
		c.provides = requirement.Provided(statedBy(installed.Bundle.Name, observed.Catalogs))
	}
	s.Neighbours, s.Requirers, s.NeighboursErr = r.Neighbours.concerning(ctx, c)
	asked := slices.ContainsFunc(s.Requirers, func(n Neighbour) bool { return n.Requirements.Needs().APIs })
	if c.needs.APIs || asked {
		s.Serves, s.APIsErr = given.asking(r.Platform)
	}
	return s
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

// next is what brings what is missing, or another bundle. What is not to be there, or cannot be
// read, nothing brings.
func (e *UnmetError) next(otherBundle string) string {
	var isToInstall, isToUpgrade bool
	for _, unmet := range e.Unmet {
		switch {
		case unmet.Kubernetes != "":
			isToUpgrade = true
		case len(unmet.APIs) > 0 || len(unmet.Packages) > 0:
			isToInstall = true
		default:
			return otherBundle
		}
	}
	switch {
	case isToInstall && isToUpgrade:
		return "install what is missing and upgrade the cluster, or " + otherBundle
	case isToUpgrade:
		return "upgrade the cluster, or " + otherBundle
	}
	return "install what is missing, or " + otherBundle
}
