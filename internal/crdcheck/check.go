// Package crdcheck says what an upgrade of CustomResourceDefinitions can break:
// definitions of files, bundles or a cluster, their successors -> what the controller
// would find before the upgrade.
package crdcheck

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

// Compare compares without a cluster: what depends on stored objects still does.
func Compare(older, newer Definitions) preflight.Verdict {
	var found []crdupgrade.Finding
	for name, old := range older {
		if successor, ok := newer[name]; ok {
			found = append(found, crdupgrade.Compare(old, successor)...)
		} else {
			found = append(found, crdupgrade.Dropped(old))
		}
	}
	return preflight.Verdict{Findings: crdupgrade.Sort(found)}
}

// CompareWithCluster compares the definitions of a cluster and its stored objects, with
// the rights that the config has.
func CompareWithCluster(ctx context.Context, config *rest.Config, newer Definitions) (preflight.Verdict, error) {
	cluster, err := dynamic.NewForConfig(config)
	if err != nil {
		return preflight.Verdict{}, fmt.Errorf("setting up a client: %w", err)
	}
	stored, err := rest.RESTClientFor(preflight.ConfigFor(config))
	if err != nil {
		return preflight.Verdict{}, fmt.Errorf("setting up a client: %w", err)
	}
	var changes []preflight.Change
	for _, name := range slices.Sorted(maps.Keys(newer)) {
		live, err := definitionOn(ctx, cluster, name)
		if err != nil {
			return preflight.Verdict{}, err
		}
		if live == nil {
			continue
		}
		wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newer[name])
		if err != nil {
			return preflight.Verdict{}, fmt.Errorf("CustomResourceDefinition %q: %w", name, err)
		}
		changes = append(changes, preflight.Change{Live: live, Wanted: &unstructured.Unstructured{Object: wanted}})
	}
	return preflight.Definitions(ctx, preflight.ListerOf(stored), crdupgrade.Policy{}, changes)
}

// definitionOn is the definition that the cluster has; nil: it has none.
func definitionOn(ctx context.Context, cluster dynamic.Interface, name string) (*unstructured.Unstructured, error) {
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
