package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// asking asks the cluster what pages want to know.
type asking struct {
	cluster *inspect.Cluster
	bundles bundlesource.Reader
	// changed is called when more of a catalog is known.
	changed func()

	// turn has one place: an explanation or a plan is made at a time. They read the whole
	// of a catalog the first time.
	turn chan struct{}

	offered offered
}

var (
	_ console.Asking = &asking{}
	_ console.Offers = &asking{}
)

func newAsking(cluster *inspect.Cluster, bundles bundlesource.Reader, changed func()) *asking {
	return &asking{cluster: cluster, bundles: bundles, changed: changed, turn: make(chan struct{}, 1), offered: newOffered()}
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
	return explanationOf(found, err)
}

// Choose is the same for an extension that one catalog is enough for.
func (a *asking) Choose(ctx context.Context, catalog *ocv1.ClusterCatalog, ext *ocv1.ClusterExtension) (console.Explanation, error) {
	pkg, err := a.read(ctx, catalog, ext.Spec.Source.Catalog.PackageName)
	if err != nil || pkg == nil {
		return console.Explanation{}, err
	}
	end, err := a.alone(ctx)
	if err != nil {
		return console.Explanation{}, err
	}
	defer end()
	found, err := a.cluster.ExplainPackage(ctx, pkg.pkg, ext)
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
	end, err := a.alone(ctx)
	if err != nil {
		return console.Configuration{}, err
	}
	defer end()
	found, err := a.cluster.Configuration(ctx, pkg.pkg, ext, a.bundles.Images)
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
	return manifests(documents)
}

// manifests are rights without the ServiceAccount that has them.
func manifests(documents []permission.Document) (string, error) {
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
			found.Rights, errs[2] = manifests(documents)
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
