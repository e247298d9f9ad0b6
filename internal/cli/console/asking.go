package console

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/explain"
	"github.com/clusterextensions/operator-controller/internal/console"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
	"github.com/clusterextensions/operator-controller/internal/preview"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// asking asks the cluster what pages want to know.
type asking struct {
	cluster *inspect.Cluster
	bundles bundlesource.Reader
	// changed is called when a catalog was read.
	changed func()

	// turn has one place: an explanation or a plan is made at a time. They read the whole
	// of a catalog the first time.
	turn chan struct{}

	mu      sync.Mutex
	shelves map[string]*shelf // by name of the catalog
}

var (
	_ console.Asking = &asking{}
	_ console.Offers = &asking{}
)

// shelf is a catalog as it was read last.
type shelf struct {
	// turn has one place: a catalog is read once at a time.
	turn   chan struct{}
	digest string
	cards  []packagecard.Card
}

func newAsking(cluster *inspect.Cluster, bundles bundlesource.Reader, changed func()) *asking {
	return &asking{cluster: cluster, bundles: bundles, changed: changed, turn: make(chan struct{}, 1), shelves: map[string]*shelf{}}
}

// alone waits for the turn, and looks at the cluster once more. What it returns ends the turn.
func (a *asking) alone(ctx context.Context) (end func(), err error) {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	end = func() { <-a.turn }
	if err := a.cluster.Reread(ctx); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// Explain says what would be chosen, and why.
func (a *asking) Explain(ctx context.Context, ext *ocv1.ClusterExtension) (console.Explanation, error) {
	end, err := a.alone(ctx)
	if err != nil {
		return console.Explanation{}, err
	}
	defer end()
	found, err := a.cluster.ExplainExtension(ctx, ext)
	if err != nil {
		return console.Explanation{}, err
	}
	lines, choices := explain.Shown(found)
	explained := console.Explanation{Lines: lines, Cluster: found.Request.Cluster}
	for _, choice := range choices {
		explained.Choices = append(explained.Choices, console.Choice(choice))
	}
	return explained, nil
}

// Plan is what the command plan prints.
func (a *asking) Plan(ctx context.Context, name string) (preview.Preview, error) {
	end, err := a.alone(ctx)
	if err != nil {
		return preview.Preview{}, err
	}
	defer end()
	plan, err := a.cluster.Plan(ctx, inspect.Request{Name: name, Bundles: a.bundles, Certificates: cli.ClusterIssuer})
	if err != nil {
		return preview.Preview{}, err
	}
	facts, err := a.cluster.Foresee(ctx, plan)
	return preview.Make(facts), err
}

// Rights are what the command bundle rbac prints, without the ServiceAccount.
func (a *asking) Rights(ctx context.Context, ext *ocv1.ClusterExtension) (string, error) {
	end, err := a.alone(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	plan, err := a.cluster.Plan(ctx, inspect.Request{Name: ext.Name, File: ext, Bundles: a.bundles, Certificates: cli.ClusterIssuer})
	if err != nil {
		return "", err
	}
	documents, err := plan.Rights()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, document := range documents {
		if _, isAccount := document.Object.(*corev1.ServiceAccount); isAccount {
			continue
		}
		text, err := cli.Commented(document)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.String(), nil
}

// Situation is what there is of an extension on the cluster.
func (a *asking) Situation(ctx context.Context, ext *ocv1.ClusterExtension) console.Situation {
	var found console.Situation
	events, err := a.cluster.Events(ctx, ext)
	if err != nil {
		found.Unknown = append(found.Unknown, err.Error())
	}
	for i := range events {
		found.Events = append(found.Events, eventOf(&events[i]))
	}
	objects, err := a.cluster.LiveObjects(ctx, ext)
	if err != nil {
		found.Unknown = append(found.Unknown, err.Error())
	}
	for _, one := range objects {
		found.Objects = append(found.Objects, console.Object{
			Kind: one.Key.Kind, Namespace: one.Key.Namespace, Name: one.Key.Name,
			Health: one.Status, Detail: one.Message, Bad: one.Status != "Current",
		})
	}
	return found
}

func eventOf(event *corev1.Event) console.Event {
	one := console.Event{Last: event.LastTimestamp.Time, Type: event.Type, Reason: event.Reason, Message: event.Message, Count: max(event.Count, 1)}
	if series := event.Series; series != nil {
		one.Last, one.Count = series.LastObservedTime.Time, series.Count
	}
	for _, at := range []time.Time{event.EventTime.Time, event.CreationTimestamp.Time} {
		if one.Last.IsZero() {
			one.Last = at
		}
	}
	return one
}

// Shelf has the cards of a catalog.
func (a *asking) Shelf(ctx context.Context, catalog *ocv1.ClusterCatalog) ([]packagecard.Card, error) {
	s := a.shelf(catalog.Name)
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if cards := a.Known(catalog); cards != nil {
		return cards, nil
	}
	content, err := a.cluster.Content(ctx, catalog)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	cards, err := packagecard.Read(ctx, content)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	s.digest, s.cards = digestOf(catalog), cards
	a.mu.Unlock()
	a.changed()
	return cards, nil
}

func (a *asking) shelf(name string) *shelf {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shelves[name] == nil {
		a.shelves[name] = &shelf{turn: make(chan struct{}, 1)}
	}
	return a.shelves[name]
}

// Known is a shelf of the same content that was read before.
func (a *asking) Known(catalog *ocv1.ClusterCatalog) []packagecard.Card {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.shelves[catalog.Name]
	if s == nil || s.digest == "" || s.digest != digestOf(catalog) {
		return nil
	}
	return s.cards
}

func digestOf(catalog *ocv1.ClusterCatalog) string {
	source := catalog.Status.ResolvedSource
	if source == nil || source.Image == nil {
		return ""
	}
	return source.Image.Ref
}

// Package is what resolution knows of a package.
func (a *asking) Package(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*resolve.Package, error) {
	return a.cluster.Package(ctx, catalog, name)
}

// Details are all objects of a package.
func (a *asking) Details(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (io.ReadCloser, error) {
	return a.cluster.PackageContent(ctx, catalog, name)
}

// keepShelves reads catalogs as soon as they are served: the table of extensions says what
// there is to upgrade to.
func (a *asking) keepShelves(ctx context.Context, seen *live) {
	tried := map[string]string{}
	for {
		_, next := seen.News()
		catalogs := seen.Catalogs().Items
		a.forgetAllBut(catalogs)
		for _, catalog := range catalogs {
			if digest := digestOf(catalog); digest != "" && catalog.Status.URLs != nil && tried[catalog.Name] != digest {
				tried[catalog.Name] = digest
				_, _ = a.Shelf(ctx, catalog) // a page that needs it says why it cannot be read
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// forgetAllBut drops the shelves of catalogs that are gone.
func (a *asking) forgetAllBut(catalogs []*ocv1.ClusterCatalog) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.shelves, func(name string, _ *shelf) bool {
		return !slices.ContainsFunc(catalogs, func(catalog *ocv1.ClusterCatalog) bool { return catalog.Name == name })
	})
}
