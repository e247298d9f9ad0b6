package console

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/console"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
)

// maxOffers is how many packages are kept that were read last. A page asks for one several
// times, for its text, its graph and its form.
const maxOffers = 8

// maxPackageObject bounds in bytes what is read of a catalog for an icon: that one object which
// describes the package. A server that does not know how to send it alone sends all it has.
const maxPackageObject = 4 << 20

// retryInterval is how long after a failure everything is asked for again that the table of
// extensions needs and that could not be read.
const retryInterval = time.Minute

// offered is what was read of catalogs. Content is what a catalog has by its digest, so
// that what is kept is never old.
type offered struct {
	mu sync.Mutex
	// turns have one place each, by name of the catalog: one thing is read of it at a time.
	turns     map[string]chan struct{}
	summaries map[string]summary // by name of the catalog
	// kept are the packages that were read last, the latest one at the end.
	kept []offer
	// newest are the highest versions of the channels of installed packages.
	newest map[offerKey]map[string]string
}

func newOffered() offered {
	return offered{turns: map[string]chan struct{}{}, summaries: map[string]summary{}, newest: map[offerKey]map[string]string{}}
}

// summary is a catalog as it was read last.
type summary struct {
	digest   string
	packages []catalogsummary.Package
}

// offerKey is a package of one content of a catalog.
type offerKey struct{ catalog, digest, name string }

func keyOf(catalog *ocv1.ClusterCatalog, name string) offerKey {
	return offerKey{catalog: catalog.Name, digest: digestOf(catalog), name: name}
}

// offer is a package as it was read.
type offer struct {
	key offerKey
	pkg *inspect.Package
	as  *console.Offer
}

// one waits until nothing else is read of a catalog.
func (o *offered) one(ctx context.Context, catalog string) (end func(), err error) {
	o.mu.Lock()
	turn := o.turns[catalog]
	if turn == nil {
		turn = make(chan struct{}, 1)
		o.turns[catalog] = turn
	}
	o.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Summary has a line for each package of a catalog. It is read once for each content.
func (a *asking) Summary(ctx context.Context, catalog *ocv1.ClusterCatalog) ([]catalogsummary.Package, error) {
	digest := digestOf(catalog)
	if known, ok := a.offered.summary(catalog.Name); ok && known.digest == digest {
		return known.packages, nil
	}
	end, err := a.offered.one(ctx, catalog.Name)
	if err != nil {
		return nil, err
	}
	defer end()
	if known, ok := a.offered.summary(catalog.Name); ok && known.digest == digest {
		return known.packages, nil
	}
	packages, err := a.cluster.Summary(ctx, catalog)
	if err != nil {
		return nil, err
	}
	a.offered.mu.Lock()
	a.offered.summaries[catalog.Name] = summary{digest: digest, packages: packages}
	a.offered.mu.Unlock()
	a.changed()
	return packages, nil
}

func (o *offered) summary(catalog string) (summary, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, ok := o.summaries[catalog]
	return found, ok
}

// Package is all that there is to tell of a package.
func (a *asking) Package(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*console.Offer, error) {
	found, err := a.read(ctx, catalog, name)
	if err != nil || found == nil {
		return nil, err
	}
	return found.as, nil
}

// read gives a package, which is read if it is not one of those that were last; nil if there
// is none.
func (a *asking) read(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*offer, error) {
	end, err := a.offered.one(ctx, catalog.Name)
	if err != nil {
		return nil, err
	}
	defer end()
	key := keyOf(catalog, name)
	if known := a.offered.last(key); known != nil {
		return known, nil
	}
	pkg, err := a.cluster.Package(ctx, catalog, name)
	if err != nil || pkg == nil {
		return nil, err
	}
	details, err := packagecard.ReadDetails(ctx, bytes.NewReader(pkg.Content), name)
	if err != nil || details == nil {
		return nil, err
	}
	pkg.Content = nil // all of it that anybody asks for is in the two others
	found := offer{key: key, pkg: pkg, as: &console.Offer{Details: *details, Resolved: pkg.Resolved}}
	a.offered.keep(found)
	return &found, nil
}

// last is a package that was read not long ago; nil if it was not.
func (o *offered) last(key offerKey) *offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := slices.IndexFunc(o.kept, func(one offer) bool { return one.key == key })
	if at < 0 {
		return nil
	}
	found := o.kept[at]
	o.kept = append(slices.Delete(o.kept, at, at+1), found)
	return &found
}

func (o *offered) keep(found offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, found)
	if len(o.kept) > maxOffers {
		o.kept = slices.Delete(o.kept, 0, len(o.kept)-maxOffers)
	}
}

// Icon is that of a package; nil if there is none.
func (a *asking) Icon(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*packagecard.Icon, error) {
	content, err := a.cluster.PackageObject(ctx, catalog, name)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return packagecard.ReadIcon(ctx, io.LimitReader(content, maxPackageObject), name)
}

// Newest are the highest versions of the channels of a package that is installed.
func (a *asking) Newest(catalog *ocv1.ClusterCatalog, name string) map[string]string {
	a.offered.mu.Lock()
	defer a.offered.mu.Unlock()
	return a.offered.newest[keyOf(catalog, name)]
}

func digestOf(catalog *ocv1.ClusterCatalog) string {
	source := catalog.Status.ResolvedSource
	if source == nil || source.Image == nil {
		return ""
	}
	return source.Image.Ref
}

// keepNewest reads each package that is installed once for each content of a catalog that
// has it: the table of extensions says which versions there are.
func (a *asking) keepNewest(ctx context.Context, seen console.Live) {
	tried, unread := map[offerKey]bool{}, map[string]string{} // the latter are digests, by name
	var retry <-chan time.Time
	for {
		_, next := seen.News()
		wanted := map[offerKey]*ocv1.ClusterCatalog{}
		for _, catalog := range seen.Catalogs().Items {
			digest := digestOf(catalog)
			if digest == "" || catalog.ServedAt() == "" {
				continue
			}
			// What could not be read is asked for again once a page has read it.
			if known, _ := a.offered.summary(catalog.Name); unread[catalog.Name] == digest && known.digest != digest {
				continue
			}
			if err := a.wantInstalled(ctx, wanted, catalog, seen.Extensions().Items); err != nil {
				unread[catalog.Name] = digest
			}
		}
		a.forgetAllBut(seen.Catalogs().Items, wanted)
		if failed := a.readNewest(ctx, wanted, tried); retry == nil && (failed || len(unread) > 0) {
			retry = time.After(a.retryInterval)
		}
		select {
		case <-next:
		case <-retry:
			retry = nil
			clear(tried)
			clear(unread)
		case <-ctx.Done():
			return
		}
	}
}

// readNewest reads what is wanted, not known, and was not tried before. It says whether any
// of it could not be read.
func (a *asking) readNewest(ctx context.Context, wanted map[offerKey]*ocv1.ClusterCatalog, tried map[offerKey]bool) (failed bool) {
	maps.DeleteFunc(tried, func(key offerKey, _ bool) bool { return wanted[key] == nil })
	for key, catalog := range wanted {
		if tried[key] || a.offered.knowsNewest(key) || ctx.Err() != nil {
			continue
		}
		tried[key] = true
		found, err := a.read(ctx, catalog, key.name)
		if err != nil || found == nil { // a page that needs it says why it cannot be read
			failed = failed || err != nil
			continue
		}
		a.offered.mu.Lock()
		a.offered.newest[key] = found.as.Details.Newest
		a.offered.mu.Unlock()
		a.changed()
	}
	return failed
}

func (o *offered) knowsNewest(key offerKey) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.newest[key]
	return known
}

// wantInstalled adds the packages of a catalog that are installed, or are to be.
func (a *asking) wantInstalled(ctx context.Context, wanted map[offerKey]*ocv1.ClusterCatalog, catalog *ocv1.ClusterCatalog, extensions []*ocv1.ClusterExtension) error {
	packages, err := a.Summary(ctx, catalog)
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for i := range packages {
		has[packages[i].Name] = true
	}
	for _, ext := range extensions {
		if from := ext.Spec.Source.Catalog; from != nil && has[from.PackageName] {
			wanted[keyOf(catalog, from.PackageName)] = catalog
		}
	}
	return nil
}

// forgetAllBut drops what is known of catalogs that are gone, and of packages that are not
// wanted any more.
func (a *asking) forgetAllBut(catalogs []*ocv1.ClusterCatalog, wanted map[offerKey]*ocv1.ClusterCatalog) {
	a.offered.mu.Lock()
	defer a.offered.mu.Unlock()
	maps.DeleteFunc(a.offered.summaries, func(name string, _ summary) bool {
		return !slices.ContainsFunc(catalogs, func(catalog *ocv1.ClusterCatalog) bool { return catalog.Name == name })
	})
	maps.DeleteFunc(a.offered.newest, func(key offerKey, _ map[string]string) bool { return wanted[key] == nil })
}
