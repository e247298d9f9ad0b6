package classic

import (
	"cmp"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Choose is the offer that the extension takes: of those that have the installed bundle in its
// channel the one that serves in the place of the CatalogSource, or else what the controller
// would take. That a ClusterCatalog says in whose place it is proves nothing, as long as it has not its image.
func (o *Operator) Choose(offers []Offer) (Offer, bool) {
	var fitting []Offer
	for _, one := range offers {
		if slices.Contains(one.Channels, o.channelIn(one)) {
			fitting = append(fitting, one)
		}
	}
	if len(fitting) == 0 {
		return Offer{}, false
	}
	return slices.MinFunc(fitting, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(o.distance(a), o.distance(b)), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Catalog, b.Catalog))
	}), true
}

// channelIn is the channel of the Subscription, or the default one of a catalog.
func (o *Operator) channelIn(offer Offer) string {
	return cmp.Or(o.Subscription.Spec.Channel, offer.DefaultChannel)
}

// distance is 0 for what serves in the place of the CatalogSource of the Subscription.
func (o *Operator) distance(offer Offer) int {
	if o.Source != nil && offer.Image != "" && offer.Image == imageOf(o.Source) {
		return 0
	}
	return 1
}

// alternatives are the catalogs of other offers that fit, sorted.
func (o *Operator) alternatives(chosen Offer, offers []Offer) []string {
	var found []string
	for _, one := range offers {
		if one.Catalog != chosen.Catalog && slices.Contains(one.Channels, o.channelIn(one)) {
			found = append(found, one.Catalog)
		}
	}
	slices.Sort(found)
	return found
}

// checkOffers is M3: a catalog has the installed bundle, or it could not stay.
func checkOffers(e *Examination) []Finding {
	op := e.Operator
	if op.CSV == nil || op.Subscription.Spec == nil {
		return nil
	}
	var found []Finding
	for _, text := range e.Unread {
		found = append(found, finding("M3", Attention, op.subscriptionKey(), "not known what a catalog has: %s", text))
	}
	if chosen, isOffered := op.Choose(e.Offers); isOffered {
		if why := unmovable(op.Source); why != "" {
			found = append(found, finding("M3", Note, op.subscriptionKey(), "its CatalogSource %s, and ClusterCatalog %q has the package", why, chosen.Catalog))
		}
		if others := op.alternatives(chosen, e.Offers); op.distance(chosen) > 0 && len(others) > 0 {
			found = append(found, finding("M3", Attention, op.subscriptionKey(), "none of the ClusterCatalogs that have the package has the image of its CatalogSource: %q is taken, and %s would do as well; serve that image, or see that they are to be trusted",
				chosen.Catalog, excerpt.Of(others, maxNames)))
		}
		return found
	}
	var without, elsewhere []string
	for _, one := range e.Offers {
		if len(one.Channels) == 0 {
			without = append(without, one.Catalog)
		} else {
			elsewhere = append(elsewhere, one.Catalog+" ("+excerpt.Of(one.Channels, maxNames)+")")
		}
	}
	switch {
	case len(elsewhere) > 0:
		return append(found, finding("M3", Blocks, op.subscriptionKey(), "bundle %q is not in channel %q: set the channel of the Subscription to one that has it: %s",
			op.CSV.Name, op.Subscription.Spec.Channel, excerpt.Of(elsewhere, maxNames)))
	case len(without) > 0:
		return append(found, finding("M3", Blocks, op.subscriptionKey(), "bundle %q, which is installed, is not in ClusterCatalog %s: serve a catalog that still has it, or let classic OLM upgrade it first",
			op.CSV.Name, excerpt.Of(without, maxNames)))
	}
	text := "`kubectl extension migrate catalogs` makes them"
	if why := unmovable(op.Source); why != "" {
		text = "its CatalogSource " + why + ": serve its content from an image"
	}
	return append(found, finding("M3", Blocks, op.subscriptionKey(), "no ClusterCatalog that is served has package %q: %s", op.Package(), text))
}

// unmovable says why there can be no ClusterCatalog in the place of a CatalogSource; empty if
// there can, and of one that there is not.
func unmovable(source *operatorsv1alpha1.CatalogSource) string {
	switch {
	case source == nil:
		return "does not exist"
	case source.Spec.SourceType != operatorsv1alpha1.SourceTypeGrpc:
		return "is of type " + string(source.Spec.SourceType) + ", which no ClusterCatalog can be"
	case source.Spec.Image == "":
		return "is reached by an address and has no image"
	}
	return ""
}
