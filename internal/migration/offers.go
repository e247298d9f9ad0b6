package migration

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// offers are what the catalogs of a cluster have, each package read once.
type offers struct {
	cluster  *Cluster
	catalogs []ocv1.ClusterCatalog
	known    map[string][]packageIn
}

// packageIn is one package of one catalog; without pkg if that could not be read, with why.
type packageIn struct {
	catalog        *ocv1.ClusterCatalog
	pkg            *resolve.Package
	defaultChannel string
	err            error
}

// offered are the catalogs that have a package, and those that could not be read, with why.
type offered struct {
	offers []classic.Offer
	unread []string
}

// of are those of the package of an operator. The error is that of ctx.
func (o *offers) of(ctx context.Context, op *classic.Operator) (offered, error) {
	name := op.Package()
	if _, isKnown := o.known[name]; !isKnown {
		o.known[name] = o.read(ctx, name)
	}
	var found offered
	for _, one := range o.known[name] {
		if one.err != nil {
			found.unread = append(found.unread, one.err.Error())
			continue
		}
		offer := classic.Offer{
			Catalog: one.catalog.Name, Priority: one.catalog.Spec.Priority,
			DefaultChannel: one.defaultChannel,
		}
		if image := one.catalog.Spec.Source.Image; image != nil {
			offer.Image = image.Ref
		}
		if op.CSV != nil {
			offer.Channels = channelsWith(one.pkg, op.CSV.Name)
		}
		found.offers = append(found.offers, offer)
	}
	return found, ctx.Err()
}

// channelsWith are the channels of a package that have a bundle, sorted.
func channelsWith(pkg *resolve.Package, bundle string) []string {
	if !slices.ContainsFunc(pkg.Bundles, func(one resolve.Bundle) bool { return one.Name == bundle }) {
		return nil
	}
	var found []string
	for _, channel := range pkg.Channels {
		if slices.ContainsFunc(channel.Entries, func(one resolve.Entry) bool { return one.Name == bundle }) {
			found = append(found, channel.Name)
		}
	}
	slices.Sort(found)
	return found
}

// read asks all catalogs that are not withdrawn for one package.
func (o *offers) read(ctx context.Context, name string) []packageIn {
	var found []packageIn
	for i := range o.catalogs {
		catalog := &o.catalogs[i]
		if catalog.Spec.AvailabilityMode == ocv1.AvailabilityModeUnavailable {
			continue
		}
		one := packageIn{catalog: catalog}
		var read *inspect.Package
		if read, one.err = o.cluster.inspect.Package(ctx, catalog, name); one.err == nil && read == nil {
			continue
		}
		if one.err == nil {
			one.pkg = &read.Resolved
			details, err := packagecard.ReadDetails(ctx, bytes.NewReader(read.Content), name)
			if err != nil {
				one.err = fmt.Errorf("package %q of catalog %q: %w", name, catalog.Name, err)
			} else if details != nil {
				one.defaultChannel = details.DefaultChannel
			}
		}
		found = append(found, one)
	}
	return found
}
