package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	configclientset "github.com/openshift/client-go/config/clientset/versioned"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/install"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/olm"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/operatorclient"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/queueinformer"
	"github.com/sirupsen/logrus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// runOLM is cmd/olm of the module, for all namespaces and without OpenShift.
func runOLM(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("olm", flag.ExitOnError)
	interval := flags.Duration("interval", 5*time.Minute, "how often everything is looked at again")
	_ = flags.Parse(args) // exits

	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := newManager(config)
	if err != nil {
		return err
	}
	operator, err := newOLM(ctx, config, *interval)
	if err != nil {
		return err
	}
	operator.Run(ctx)
	<-operator.Ready()
	if err := operator.EnsureCSVMetric(); err != nil {
		return err
	}
	if err := manager.Start(ctx); err != nil {
		return err
	}
	<-operator.Done()
	return nil
}

func newOLM(ctx context.Context, config *rest.Config, interval time.Duration) (*olm.Operator, error) {
	openshift, err := configclientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kubernetes, err := operatorclient.NewClientFromRestConfig(config)
	if err != nil {
		return nil, err
	}
	own, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataOnly, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return olm.NewOperator(ctx,
		olm.WithLogger(logrus.New()),
		olm.WithWatchedNamespaces(metav1.NamespaceAll),
		olm.WithResyncPeriod(queueinformer.ResyncWithJitter(interval, 0.2)),
		olm.WithExternalClient(own),
		olm.WithMetadataClient(metadataOnly),
		olm.WithOperatorClient(kubernetes),
		olm.WithRestConfig(config),
		olm.WithConfigClient(openshift),
	)
}

// newManager runs what classic OLM has of controllers of controller-runtime.
func newManager(config *rest.Config) (ctrl.Manager, error) {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	if err := operators.AddToScheme(scheme); err != nil {
		return nil, err
	}
	cached, err := cachedObjects()
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{ByObject: cached},
	})
	if err != nil {
		return nil, err
	}
	return manager, addControllers(manager)
}

// cachedObjects are those that classic OLM has marked as its own, and CSVs that are no
// copies.
func cachedObjects() (map[client.Object]cache.ByObject, error) {
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{install.OLMManagedLabelKey: install.OLMManagedLabelValue})}
	noCopy, err := labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey, selection.DoesNotExist, nil)
	if err != nil {
		return nil, err
	}
	cached := map[client.Object]cache.ByObject{
		&operatorsv1alpha1.ClusterServiceVersion{}: {Label: labels.NewSelector().Add(*noCopy)},
	}
	for _, object := range []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
		&apiextensionsv1.CustomResourceDefinition{}, &apiregistrationv1.APIService{},
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		cached[object] = managed
	}
	return cached, nil
}

func addControllers(manager ctrl.Manager) error {
	log := ctrl.Log.WithName("controllers")
	conditions, err := operators.NewOperatorConditionReconciler(manager.GetClient(), log.WithName("operatorcondition"), manager.GetScheme())
	if err != nil {
		return err
	}
	generator, err := operators.NewOperatorConditionGeneratorReconciler(manager.GetClient(), log.WithName("operatorcondition-generator"), manager.GetScheme())
	if err != nil {
		return err
	}
	operator, err := operators.NewOperatorReconciler(manager.GetClient(), log.WithName("operator"), manager.GetScheme())
	if err != nil {
		return err
	}
	adoption, err := operators.NewAdoptionReconciler(manager.GetClient(), log.WithName("adoption"), manager.GetScheme())
	if err != nil {
		return err
	}
	for name, controller := range map[string]interface{ SetupWithManager(ctrl.Manager) error }{
		"operatorcondition": conditions, "operatorcondition-generator": generator, "operator": operator, "adoption": adoption,
	} {
		if err := controller.SetupWithManager(manager); err != nil {
			return fmt.Errorf("setting up controller %s: %w", name, err)
		}
	}
	return nil
}
