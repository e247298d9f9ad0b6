package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundleimage"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
	"github.com/clusterextensions/operator-controller/internal/turn"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// wire builds every leaf of a session and hands it to those who use it. It is the only
// place where they meet.
func (p *process) wire(s *session, api kubernetes.Interface, told record.EventRecorder) error {
	mgr, o := s.manager, p.options
	sources := controller.NewSources()
	platform, err := newPlatform(mgr, sources)
	if err != nil {
		return err
	}
	mapper := platform.Mapper()
	applier, err := applier.New(applier.Config{
		REST: mgr.GetConfig(), Mapper: mapper, SystemNamespace: o.systemNamespace,
		Changed: sources.Content.Wake, LacksNamespace: controller.LacksNamespace(mgr.GetClient()), Now: time.Now,
	})
	if err != nil {
		return err
	}
	s.close = append(s.close, applier.Close)
	pulls, err := p.newImageSources(mgr, api, told)
	if err != nil {
		return err
	}
	pulls.judges = append(pulls.judges, func(context.Context) { sources.Policies.Send() })
	bundles, err := p.newBundles(mgr, pulls, sources.Wakeups.Wake)
	if err != nil {
		return err
	}
	neighbours := controller.NewNeighbours(mgr.GetClient(), p.packages)
	catalogs := &controller.CatalogReconciler{
		Client: mgr.GetClient(), Catalogs: p.packages, Neighbours: neighbours, Wakeups: sources.Wakeups,
		Metrics: p.metrics.catalogs, Stock: p.packages.Stock,
	}
	if err := p.addCatalogsTo(s, api, pulls, told, catalogs); err != nil {
		return err
	}
	content := releases{applier, bundles}
	return controller.Setup(mgr, &controller.Reconciler{
		Client:       mgr.GetClient(),
		Releases:     content,
		Deletions:    content,
		Uninstalls:   content,
		Bundles:      bundles,
		Catalogs:     p.packages,
		Neighbours:   neighbours,
		Platform:     platform,
		Events:       told,
		Metrics:      p.metrics.extensions,
		Turns:        turn.New(largePasses(o.workers), sources.Wakeups.Wake),
		ChartTurns:   turn.NewOf(turn.Charts, 1, sources.Wakeups.Wake),
		Certificates: func() (bundle.CertificateProvider, error) { return webhookcert.ProviderOn(mapper) },
		Charts:       helmchart.New().For,
		Lookup:       applier.Lookup,
		SharedPods:   applier.SharedPods,
		ServedAPIs:   platform.ServedAPIs,
		Forget:       content.forget,
		MinReady:     time.Duration(o.minReadySeconds) * time.Second,

		UninstallPolicy: controller.UninstallPolicy(o.uninstallPolicy),

		Now:   time.Now,
		After: func(wait time.Duration, do func()) func() bool { return time.AfterFunc(wait, do).Stop },
	}, sources, o.workers)
}

// addCatalogsTo has a session read catalogs and, unless something else does, hold what is
// served.
func (p *process) addCatalogsTo(
	s *session, api kubernetes.Interface, pulls *imageSources, told record.EventRecorder, catalogs *controller.CatalogReconciler,
) error {
	if err := s.manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return p.packages.ForgetGone(ctx, s.manager.GetClient())
	})); err != nil {
		return fmt.Errorf("setting up the catalog client: %w", err)
	}
	if err := controller.SetupCatalogs(s.manager, catalogs); err != nil || p.catalogs == nil {
		return err
	}
	return p.follow(s, api, pulls, told, catalogs.Stored)
}

// largePasses is how many extensions with much content are worked on at a time: the
// others go on beside them.
func largePasses(workers int) int { return max(1, workers/4) }

// newBundles makes what pulls bundles; wake tells an extension that its own has come.
func (p *process) newBundles(mgr ctrl.Manager, pulls *imageSources, wake func(string)) (*bundleimage.Images, error) {
	puller, err := p.newPuller("bundles", pulls, newBundleSpace())
	if err != nil {
		return nil, err
	}
	accounts, err := newAccounts(mgr.GetConfig(), mgr.GetClient(), pulls.authFile)
	if err != nil {
		return nil, err
	}
	images := bundleimage.New(bundleimage.Config{
		Puller: puller, Accounts: accounts, Extensions: bundleimage.StayingExtensions(mgr.GetClient()), Wake: wake, Now: time.Now,
	})
	for _, workers := range []manager.Runnable{images.Fetches, images.Verdicts.Looks} {
		if err := mgr.Add(workers); err != nil {
			return nil, fmt.Errorf("setting up the pulls of bundles: %w", err)
		}
	}
	return images, nil
}
