package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Ports. That of metrics is in the bundles.
const (
	metricsAddress = ":8080"
	probesAddress  = ":8081"
	webhookPort    = 9443
)

var info = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "sample_operator_info", Help: "The version of the sample operator that runs.",
}, []string{"version"})

// operate keeps Widgets and serves until working ends; it says that it is not ready
// from when it is told to end.
func operate(working, told context.Context, s settings) error {
	metrics.Registry.MustRegister(info)
	info.WithLabelValues(s.version).Set(1)
	m, err := newManager(s)
	if err != nil {
		return err
	}
	if err := addProbes(told, m, s); err != nil {
		return err
	}
	if err := keepWidgets(m, s); err != nil {
		return err
	}
	return m.Start(working)
}

func newManager(s settings) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	options := ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       server.Options{BindAddress: metricsAddress},
		HealthProbeBindAddress:        probesAddress,
		LeaderElection:                true,
		LeaderElectionID:              s.name,
		LeaderElectionReleaseOnCancel: true,
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: webhookPort, CertDir: certificates}),
	}
	if s.namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{s.namespace: {}}
	}
	m, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if s.hasWebhooks() {
		serveWebhooks(m.GetWebhookServer(), s)
	}
	return m, nil
}

var (
	errStarting = errors.New("it has just started")
	errEnding   = errors.New("it was told to end")
)

func addProbes(told context.Context, m manager.Manager, s settings) error {
	began := time.Now()
	ready := func(request *http.Request) error {
		switch {
		case told.Err() != nil:
			return errEnding
		case time.Since(began) < s.readyIn:
			return errStarting
		case s.hasWebhooks():
			return m.GetWebhookServer().StartedChecker()(request)
		default:
			return nil
		}
	}
	alive := func(*http.Request) error { return nil }
	return errors.Join(m.AddReadyzCheck("operator", ready), m.AddHealthzCheck("operator", alive))
}

// keepWidgets makes every Widget ready.
func keepWidgets(m manager.Manager, s settings) error {
	kind := schema.GroupVersionKind{Group: s.group, Version: "v1alpha1", Kind: "Widget"}
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(kind)
	return ctrl.NewControllerManagedBy(m).Named("widget").For(widget).Complete(&widgets{client: m.GetClient(), kind: kind})
}

type widgets struct {
	client client.Client
	kind   schema.GroupVersionKind
}

// Reconcile sets status.ready.
func (w *widgets) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(w.kind)
	if err := w.client.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ready, _, _ := unstructured.NestedBool(widget.Object, "status", "ready"); ready {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(widget.Object, true, "status", "ready"); err != nil {
		return ctrl.Result{}, fmt.Errorf("setting the status: %w", err)
	}
	return ctrl.Result{}, client.IgnoreNotFound(w.client.Status().Update(ctx, widget))
}
