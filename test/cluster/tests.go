package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RunTests is for a TestMain whose tests share a control plane without nodes: it is
// started and prepared before the first one, and stopped after the last. It gives the
// code to exit with.
func RunTests(tests interface{ Run() int }, options Options, prepare func(context.Context, *Cluster) error) int {
	options.Nodes, options.Progress = NoNodes, os.Stderr
	code, err := runTests(tests, options, prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func runTests(tests interface{ Run() int }, options Options, prepare func(context.Context, *Cluster) error) (_ int, err error) {
	ctx := context.Background()
	started, err := Start(ctx, options)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, started.Stop()) }()
	if err := prepare(ctx, started); err != nil {
		return 0, err
	}
	return tests.Run(), nil
}

// Client may do everything. It has the kinds of Kubernetes, and those that are added.
func (c *Cluster) Client(kinds ...func(*runtime.Scheme) error) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range append(kinds, clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	connected, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return connected, nil
}
