package main

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// clients read definitions, and what is stored of them.
func (o *crdCheck) clients() (dynamic.Interface, preflight.Lister, error) {
	config, err := o.access.config()
	if err != nil {
		return nil, nil, err
	}
	definitions, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("setting up a client: %w", err)
	}
	stored, err := rest.RESTClientFor(preflight.ConfigFor(config))
	if err != nil {
		return nil, nil, fmt.Errorf("setting up a client: %w", err)
	}
	return definitions, preflight.ListerOf(stored), nil
}

// liveDefinition is the definition that the cluster has; nil: it has none.
func liveDefinition(ctx context.Context, cluster dynamic.Interface, name string) (*unstructured.Unstructured, error) {
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	live, err := cluster.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading CustomResourceDefinition %q of the cluster: %w", name, err)
	}
	return live, nil
}

func objectOf(crd *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: %w", crd.Name, err)
	}
	return object, nil
}
