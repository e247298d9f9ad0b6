package main

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/catalog"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/operators/catalogtemplate"
	"github.com/sirupsen/logrus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
)

const (
	// globalNamespace has the catalogs that are for all namespaces.
	globalNamespace = "olm"
	// noImage stands for the images of pods that unpack bundles and serve catalogs: none
	// is ever run here.
	noImage = "registry.test/none"

	unpackTimeout = 10 * time.Minute
	planTimeout   = time.Minute
	noUserID      = -1
)

// runCatalog is cmd/catalog of the module, without OpenShift.
func runCatalog(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("catalog", flag.ExitOnError)
	interval := flags.Duration("interval", 15*time.Minute, "how often everything is looked at again")
	_ = flags.Parse(args) // exits

	scheme := clientgoscheme.Scheme
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	if err := apiregistrationv1.AddToScheme(scheme); err != nil {
		return err
	}
	logger, kubeconfig := logrus.New(), os.Getenv("KUBECONFIG")
	operator, err := catalog.NewOperator(ctx, kubeconfig, clock.RealClock{}, logger, *interval,
		noImage, noImage, noImage, globalNamespace, scheme, planTimeout, unpackTimeout, noUserID)
	if err != nil {
		return err
	}
	templates, err := catalogtemplate.NewOperator(ctx, kubeconfig, logger, *interval, globalNamespace)
	if err != nil {
		return err
	}
	operator.Run(ctx)
	<-operator.Ready()
	templates.Run(ctx)
	<-templates.Ready()
	<-operator.Done()
	return nil
}
