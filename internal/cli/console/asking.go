package console

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/explain"
	"github.com/clusterextensions/operator-controller/internal/console"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/manifest"
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// maxPulls is how many answers are made at a time that pull a bundle. Each may hold one of
// the largest size, and a registry that is slow holds up no more than that.
const maxPulls = 4

// asking asks the cluster what pages want to know.
type asking struct {
	cluster *inspect.Cluster
	bundles bundlesource.Reader
	// changed is called when more of a catalog is known.
	changed func()

	// explaining has one place: the first explanation reads the whole of a catalog. What
	// pulls bundles besides has places of its own, so that no registry holds up what needs
	// none.
	explaining, pulling chan struct{}

	offered offered
	// retryInterval is that of the constant, but for tests.
	retryInterval time.Duration
}

var (
	_ console.Asking = &asking{}
	_ console.Offers = &asking{}
)

func newAsking(cluster *inspect.Cluster, bundles bundlesource.Reader, changed func()) *asking {
	return &asking{
		cluster: cluster, bundles: bundles, changed: changed,
		explaining: make(chan struct{}, 1), pulling: make(chan struct{}, maxPulls),
		offered: newOffered(), retryInterval: retryInterval,
	}
}

// in waits for a place, and looks at the cluster once more. Calling end leaves the place.
func (a *asking) in(ctx context.Context, places chan struct{}) (now *inspect.Cluster, end func(), err error) {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	end = func() { <-places }
	if now, err = a.cluster.Again(ctx); err != nil {
		end()
		return nil, nil, err
	}
	return now, end, nil
}

// Explain says what would be chosen, and why.
func (a *asking) Explain(ctx context.Context, ext *ocv1.ClusterExtension) (console.Explanation, error) {
	cluster, end, err := a.in(ctx, a.explaining)
	if err != nil {
		return console.Explanation{}, err
	}
	defer end()
	found, err := cluster.ExplainExtension(ctx, ext)
	return explanationOf(found, err)
}

// Choose is the same for an extension that one catalog is enough for.
func (a *asking) Choose(ctx context.Context, catalog *ocv1.ClusterCatalog, ext *ocv1.ClusterExtension) (console.Explanation, error) {
	pkg, err := a.read(ctx, catalog, ext.Spec.Source.Catalog.PackageName)
	if err != nil || pkg == nil {
		return console.Explanation{}, err
	}
	cluster, end, err := a.in(ctx, a.explaining)
	if err != nil {
		return console.Explanation{}, err
	}
	defer end()
	found, err := cluster.ExplainPackage(ctx, pkg.pkg, ext)
	return explanationOf(found, err)
}

// Configuration is what the bundle can be configured by that would be chosen from a catalog.
func (a *asking) Configuration(ctx context.Context, catalog *ocv1.ClusterCatalog, ext *ocv1.ClusterExtension) (console.Configuration, error) {
	pkg, err := a.read(ctx, catalog, ext.Spec.Source.Catalog.PackageName)
	if err == nil && pkg == nil {
		err = errors.New("the catalog does not have the package")
	}
	if err != nil {
		return console.Configuration{}, err
	}
	cluster, end, err := a.in(ctx, a.pulling)
	if err != nil {
		return console.Configuration{}, err
	}
	defer end()
	found, err := cluster.Configuration(ctx, pkg.pkg, ext, a.bundles.Images)
	configuration := console.Configuration{Bundle: found.Bundle.Name, Schema: found.Schema}
	if wrong, ok := errors.AsType[*bundle.ConfigError](found.Problem); ok {
		configuration.Problems = wrong.Problems
	} else if found.Problem != nil {
		configuration.Problems = []string{found.Problem.Error()}
	}
	return configuration, err
}

func explanationOf(found controller.Explanation, err error) (console.Explanation, error) {
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
	cluster, end, err := a.in(ctx, a.pulling)
	if err != nil {
		return preview.Preview{}, err
	}
	defer end()
	plan, err := cluster.Plan(ctx, inspect.Request{Name: name, Bundles: a.bundles, Certificates: cli.ClusterIssuer})
	if err != nil {
		return preview.Preview{}, err
	}
	facts, err := cluster.Foresee(ctx, plan)
	return preview.Make(facts), err
}

// Rights are what the command bundle rbac prints, without the ServiceAccount.
func (a *asking) Rights(ctx context.Context, ext *ocv1.ClusterExtension) ([]permission.Document, error) {
	cluster, end, err := a.in(ctx, a.pulling)
	if err != nil {
		return nil, err
	}
	defer end()
	plan, err := cluster.Plan(ctx, inspect.Request{Name: ext.Name, File: ext, Bundles: a.bundles, Certificates: cli.ClusterIssuer})
	if err != nil {
		return nil, err
	}
	return plan.Rights()
}

// Situation is what there is of an extension on the cluster.
func (a *asking) Situation(ctx context.Context, ext *ocv1.ClusterExtension) console.Situation {
	var found console.Situation
	var events []corev1.Event
	var tree overview.Tree
	errs := make([]error, 3)
	var group sync.WaitGroup
	group.Go(func() { events, errs[0] = a.cluster.Events(ctx, ext) })
	group.Go(func() {
		if tree, errs[1] = a.cluster.Tree(ctx, ext.Name); errs[1] != nil {
			errs[1] = fmt.Errorf("objects: %w", errs[1])
		}
	})
	group.Go(func() {
		var documents []permission.Document
		if documents, errs[2] = a.cluster.RightsInUse(ctx, ext); errs[2] == nil {
			found.Rights, errs[2] = manifest.File(documents)
		}
	})
	group.Wait()
	for i := range events {
		found.Events = append(found.Events, eventOf(&events[i]))
	}
	found.Objects, found.More = tree.Objects, tree.More
	for _, err := range errs {
		if err != nil {
			found.Unknown = append(found.Unknown, err.Error())
		}
	}
	found.Unknown = append(found.Unknown, tree.Unknown...)
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
