package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/controller"
)

// leaderLock is that of the reference implementation, so that the two never act
// on one cluster at once.
const leaderLock = "9c4404e7.operatorframework.io"

// A leader that dies is succeeded within leaseDuration; one that stops lets go
// at once.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// shutdownTimeout is within the grace period of the pod.
const shutdownTimeout = 50 * time.Second

// run starts the manager and returns when ctx has ended and all is stopped.
func run(ctx context.Context, o *options) error {
	setLoggers(os.Stderr, int8(o.verbosity)) //nolint:gosec // a small number
	limitMemory()
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := wire(mgr, o); err != nil {
		return err
	}
	ctrl.Log.Info("starting", "version", currentVersion(), "systemNamespace", o.systemNamespace, "flags", o.flags())
	o.logTaken(ctrl.Log)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	config, err := program.RESTConfig(kubeconfig, "")
	if err != nil {
		return nil, err
	}
	config.UserAgent = "operator-controller/" + currentVersion()
	// The API server's own fairness limits requests.
	config.QPS = -1
	return config, nil
}

func newManager(config *rest.Config, o *options) (ctrl.Manager, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	metrics, certificate, err := metricsOptions(o)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(),
		Metrics:                       metrics,
		HealthProbeBindAddress:        o.healthAddress,
		PprofBindAddress:              o.pprofAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaderLock,
		LeaderElectionNamespace:       o.systemNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
		GracefulShutdownTimeout:       new(shutdownTimeout),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	if certificate != nil {
		if err := mgr.Add(certificate); err != nil {
			return nil, fmt.Errorf("setting up the certificate of metrics: %w", err)
		}
	}
	if err := mgr.Add(manager.RunnableFunc(lead)); err != nil {
		return nil, fmt.Errorf("setting up leadership: %w", err)
	}
	return mgr, addProbes(mgr)
}

// lead tells since when, and until when, the process is the one that acts.
func lead(ctx context.Context) error {
	ctrl.Log.Info("leadership taken", "lease", leaderLock)
	<-ctx.Done()
	ctrl.Log.Info("leadership given up or lost", "lease", leaderLock)
	return nil
}

// cacheOptions keep in memory what passes read: extensions and catalogs whole, and
// of ServiceAccounts which pull secrets they have. Secrets are not among it.
func cacheOptions() cache.Options {
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ServiceAccount{}: {Transform: onlyPullSecrets},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// onlyPullSecrets drops all else of a ServiceAccount.
func onlyPullSecrets(object any) (any, error) {
	account, ok := object.(*corev1.ServiceAccount)
	if !ok {
		return object, nil
	}
	return &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace, Name: account.Name, UID: account.UID, ResourceVersion: account.ResourceVersion,
		},
		ImagePullSecrets: account.ImagePullSecrets,
	}, nil
}

// metricsOptions come with the certificate, which has to be started to be
// reloaded; it is nil when there are no metrics.
func metricsOptions(o *options) (metricsserver.Options, *certwatcher.CertWatcher, error) {
	options := metricsserver.Options{BindAddress: o.metricsAddress}
	if o.metricsAddress == "0" {
		return options, nil, nil
	}
	certificate, err := certwatcher.New(o.tlsCert, o.tlsKey)
	if err != nil {
		return options, nil, fmt.Errorf("reading the serving certificate: %w", err)
	}
	options.SecureServing = true
	options.FilterProvider = filters.WithAuthenticationAndAuthorization
	options.TLSOpts = []func(*tls.Config){o.tls.Apply, func(c *tls.Config) {
		c.GetCertificate = certificate.GetCertificate
		// HTTP/2 refuses cipher suites that profiles may have, and resetting its streams
		// is a known attack.
		c.NextProtos = []string{"http/1.1"}
	}}
	return options, certificate, nil
}

// addProbes makes the process ready once it knows the cluster.
func addProbes(mgr ctrl.Manager) error {
	ready := &readiness{}
	if err := mgr.Add(ready); err != nil {
		return fmt.Errorf("setting up readiness: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("setting up liveness: %w", err)
	}
	return addReadiness(mgr, "caches", ready.check)
}

// readiness is started by the manager after its caches are filled, on every
// replica.
type readiness struct{ reached atomic.Bool }

func (r *readiness) Start(context.Context) error {
	r.reached.Store(true)
	return nil
}

func (*readiness) NeedLeaderElection() bool { return false }

var errNotReady = errors.New("the cluster has not been read yet")

func (r *readiness) check(*http.Request) error {
	if !r.reached.Load() {
		return errNotReady
	}
	return nil
}
