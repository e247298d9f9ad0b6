package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/preparedpackage"
)

// drainTime is for how long catalogs are served after the process was told to end. By then
// nobody sends requests here any more: nodes learn within it that the pod is not ready.
const drainTime = 5 * time.Second

// process is what outlives sessions: what answers to others, and what is on disk.
type process struct {
	options   *options
	config    *rest.Config
	identity  string
	ask       func(context.Context) error // whether the API server is there
	reconnect func()                      // drops idle connections to it
	readiness *readiness
	metrics   metrics
	// metricsTLS is that of the server of metrics.
	metricsTLS serverTLS
	packages   *preparedpackage.Cache
	catalogs   *ownCatalogs // nil if something else serves catalogs

	obstacle obstacle
	// pauses grow while sessions do not last.
	pauses wait.Backoff
	// running is started once.
	running []manager.Runnable
	// unsigned are the folders of images of which it is told that anyone's are accepted.
	unsigned sync.Map
}

// newProcess has what is started with run, which ends with ctx.
func newProcess(ctx context.Context, config *rest.Config, o *options) (*process, error) {
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	lock, err := newLock(config, o.systemNamespace, identity, nil)
	if err != nil {
		return nil, err
	}
	ask, err := newQuestion(config, lock)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(runtimemetrics.Registry)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("setting up a connection: %w", err)
	}
	p := &process{
		options: o, config: config, identity: identity, ask: ask, metrics: metrics,
		reconnect: func() { utilnet.CloseIdleConnectionsFor(transport) },
		pauses:    newPauses(),
	}
	p.readiness = &readiness{now: time.Now}
	answers := newProbes(ctx)
	answers.add("caches", p.readiness.hasRead)
	if err := p.addCatalogs(answers); err != nil {
		return nil, err
	}
	if p.metricsTLS, err = newMetricsTLS(o); err != nil {
		return nil, err
	}
	if err := p.tellExpirations(runtimemetrics.Registry); err != nil {
		return nil, err
	}
	server, err := newMetricsServer(config, p.metricsTLS, o)
	if err != nil {
		return nil, err
	}
	p.start(server, p.metricsTLS.files, answers.server(o.healthAddress), newServer("pprof", o.pprofAddress, profiles()))
	return p, nil
}

// start has the runnables that there are started with the process.
func (p *process) start(runnables ...manager.Runnable) {
	for _, runs := range runnables {
		if runs != nil {
			p.running = append(p.running, runs)
		}
	}
}

// addCatalogs has catalogs served, unless something else does, and read.
func (p *process) addCatalogs(answers *probes) error {
	through, err := catalogclient.NewHTTPClient(p.options.catalogCAs)
	if p.options.serveCatalogs {
		if p.catalogs, err = newOwnCatalogs(p.options, runtimemetrics.Registry); err != nil {
			return err
		}
		through = p.catalogs.reader
		p.readiness.store = p.catalogs.store
		p.start(p.catalogs.server, p.catalogs.tls.files)
		answers.add("catalog-server", p.catalogs.server.Check)
		answers.add("catalog-certificate", p.catalogs.tls.check)
		answers.add("catalog-content", p.readiness.hasContent)
	}
	if err != nil {
		return err
	}
	client, err := catalogclient.New(catalogclient.Config{
		HTTPClient: through,
		Dir:        filepath.Join(p.options.cachePath, "catalog-indexes"),
	})
	if err != nil {
		return fmt.Errorf("setting up the catalog client: %w", err)
	}
	p.packages = preparedpackage.New(client)
	return nil
}

// run serves and acts until ctx has ended and all is stopped. What is served is served for
// longer: who has asked gets an answer, and who asks before it is known that there will be
// none, too.
func (p *process) run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	servers, failed := errgroup.WithContext(serving)
	for _, runs := range p.running {
		servers.Go(func() error { return runs.Start(failed) })
	}
	acting, cease := context.WithCancel(ctx)
	defer cease()
	context.AfterFunc(failed, cease)
	// Answers under way end while what acts does, so that both end within the grace period.
	servers.Go(func() error {
		p.drain(ctx, failed)
		stop()
		return nil
	})
	err := p.act(acting)
	if err != nil {
		stop()
	}
	return errors.Join(err, servers.Wait())
}

// drain returns when nobody sends requests for catalogs any more, after the end of ctx, or
// of the servers. Without leader election there is no other replica to send them to.
func (p *process) drain(ctx, servers context.Context) {
	select {
	case <-ctx.Done():
	case <-servers.Done():
		return
	}
	if p.catalogs == nil || !p.options.leaderElect {
		return
	}
	ctrl.Log.V(1).Info("catalogs are served for a little longer", "time", drainTime.String())
	p.catalogs.server.Drain()
	select {
	case <-time.After(drainTime):
	case <-servers.Done():
	}
}
