package environment

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// OwnerLabel is on each object of an extension, with its name.
const OwnerLabel = "olm.operatorframework.io/owner-name"

// Owned lists all objects, whatever their kind, whose labels are selected, as
// kind and name. CRDs that are as good as gone are not among them.
func (e *Environment) Owned(ctx context.Context, selector string) ([]string, error) {
	config := e.Cluster.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	groups, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("listing the kinds of the cluster: %w", err)
	}
	reader := metadata.NewForConfigOrDie(config)
	var found []string
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading the kinds of the cluster: %w", err)
		}
		for _, kind := range group.APIResources {
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "delete") {
				continue
			}
			list, err := reader.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				continue // a kind whose CRD is just going away
			}
			for i := range list.Items {
				if !IsDying(kind.Kind, &list.Items[i]) {
					found = append(found, kind.Kind+" "+list.Items[i].Name)
				}
			}
		}
	}
	return found, nil
}

// IsDying tells CRDs that are deleted and wait for the API server alone. It can
// miss a deletion that comes soon after another change to the CRD, and finds it
// again five minutes later.
func IsDying(kind string, object metav1.Object) bool {
	return kind == "CustomResourceDefinition" && object.GetDeletionTimestamp() != nil &&
		slices.Equal(object.GetFinalizers(), []string{apiextensionsv1.CustomResourceCleanupFinalizer})
}
