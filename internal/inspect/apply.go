package inspect

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// Apply writes the documents of a manifest, one after the other, as whoever asks. What somebody
// else has written otherwise is left to them, which is an error. Before anything is written,
// those that belong to no namespace are tried.
func (c *Cluster) Apply(ctx context.Context, documents []permission.Document) error {
	mapper, err := apiutil.NewDynamicRESTMapper(c.cfg.REST, c.through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	api, err := dynamic.NewForConfigAndClient(c.cfg.REST, c.through)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	for _, trial := range []bool{true, false} {
		for _, document := range documents {
			if err := apply(ctx, api, mapper, document.Object, trial); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply writes one, or only tries it.
func apply(ctx context.Context, api dynamic.Interface, mapper meta.RESTMapper, document any, trial bool) error {
	written, ok := document.(map[string]any)
	if !ok {
		var err error
		if written, err = runtime.DefaultUnstructuredConverter.ToUnstructured(document); err != nil {
			return err
		}
	}
	wanted := &unstructured.Unstructured{Object: written}
	kind, key := wanted.GroupVersionKind(), object.KeyOf(wanted)
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("applying %s: %w", key, err)
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager}
	if trial {
		if mapping.Scope.Name() != meta.RESTScopeNameRoot {
			return nil // its namespace may be yet to come
		}
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, err := api.Resource(mapping.Resource).Namespace(wanted.GetNamespace()).Apply(ctx, wanted.GetName(), wanted, options); err != nil {
		return fmt.Errorf("applying %s: %w", key, err)
	}
	return nil
}
