package inspect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// Apply writes the documents of a manifest, one after the other, as whoever asks. What somebody
// else has written otherwise is left to them, which is an error, and so is an extension that is
// there already with another spec. Before anything is written, those that belong to no namespace
// are tried.
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
	resource := api.Resource(mapping.Resource).Namespace(wanted.GetNamespace())
	applied, err := resource.Apply(ctx, wanted.GetName(), wanted, options)
	if err != nil {
		return fmt.Errorf("applying %s: %w", key, err)
	}
	if trial && kind.GroupKind() == ocv1.GroupVersion.WithKind(ocv1.ClusterExtensionKind).GroupKind() {
		return checkUnchanged(ctx, resource, applied)
	}
	return nil
}

// checkUnchanged fails if a trial would change the spec of an extension that is there: what was
// said the first time, such as a version, would be taken back by saying nothing of it.
func checkUnchanged(ctx context.Context, resource dynamic.ResourceInterface, tried *unstructured.Unstructured) error {
	live, err := resource.Get(ctx, tried.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading ClusterExtension %q: %w", tried.GetName(), err)
	case live.GetGeneration() != tried.GetGeneration():
		return fmt.Errorf("ClusterExtension %q is there already, and its spec is another one: edit it, or apply the manifest that this prints without --apply", tried.GetName())
	}
	return nil
}
