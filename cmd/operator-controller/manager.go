package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/leadership"
)

// shutdownTimeout is within the grace period of the pod.
const shutdownTimeout = 50 * time.Second

// run returns when ctx has ended and all is stopped.
func run(ctx context.Context, o *options) error {
	setLoggers(os.Stderr, o.verbosity)
	limitMemory()
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	p, err := newProcess(ctx, config, o)
	if err != nil {
		return err
	}
	ctrl.Log.Info("starting", "version", currentVersion(), "systemNamespace", o.systemNamespace, "flags", o.flags())
	o.logTaken(ctrl.Log)
	return p.run(ctx)
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

// newSession has all that is made anew with each session.
func (p *process) newSession(ctx context.Context) (*session, error) {
	s := &session{gate: &gate{}}
	if err := p.setUp(ctx, s); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (p *process) setUp(ctx context.Context, s *session) error {
	connection := s.gate.behind(p.config)
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	told := newEvents(scheme, api)
	s.close = append(s.close, told.close)
	if p.options.leaderElect {
		// It is given up when nothing else may be sent any more.
		lock, err := newLock(p.config, p.options.systemNamespace, p.identity, leaseEvents{told.recorder, s.gate})
		if err != nil {
			return err
		}
		s.lock = &contact{Interface: lock, now: time.Now, log: ctrl.Log}
	}
	managed, err := ctrl.NewManager(connection, managerOptions(scheme, s.lock))
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	if err := controller.CheckServed(managed.GetRESTMapper()); err != nil {
		return err
	}
	if err := controller.HoldOnStandby(ctx, managed.GetCache()); err != nil {
		return err
	}
	s.manager = &countingManager{Manager: managed}
	for _, runs := range []manager.Runnable{
		told,
		runnable(lead),
		onEveryReplica(func() { p.readiness.reached(managed.GetClient()) }),
		onEveryReplica(releasePages),
	} {
		if err := s.manager.Add(runs); err != nil {
			return fmt.Errorf("setting up the manager: %w", err)
		}
	}
	if err := p.metricsTLS.keep(s.manager, api, p.options); err != nil {
		return err
	}
	return p.wire(s, api, told.recorder)
}

// managerOptions are those of a manager without any server: these outlive it. The lock is
// nil without leader election.
func managerOptions(scheme *runtime.Scheme, lock *contact) manager.Options {
	options := manager.Options{
		Scheme: scheme,
		Cache:  cacheOptions(),
		// Another session has controllers of the same names.
		Controller:                    config.Controller{SkipNameValidation: new(true)},
		Metrics:                       metricsserver.Options{BindAddress: nowhere},
		HealthProbeBindAddress:        nowhere,
		PprofBindAddress:              nowhere,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
		GracefulShutdownTimeout:       new(shutdownTimeout),
	}
	if lock != nil {
		options.LeaderElection, options.LeaderElectionID = true, leadership.Lock
		options.LeaderElectionResourceLockInterface = lock
	}
	return options
}

// lead tells since when, and until when, the process is the one that acts.
func lead(ctx context.Context) error {
	ctrl.Log.Info("leadership taken", "lease", leadership.Lock)
	<-ctx.Done()
	ctrl.Log.Info("leadership given up or lost", "lease", leadership.Lock)
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
