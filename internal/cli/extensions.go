package cli

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// fieldManager is the name under which the API server notes what commands write.
const fieldManager = "kubectl-extension"

// Extensions are the ClusterExtensions of a cluster, with the rights of the person who calls.
type Extensions struct{ api dynamic.ResourceInterface }

// Extensions reaches the cluster with the first request. The error may be a
// *program.UsageError.
func (c *Cluster) Extensions() (*Extensions, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	return &Extensions{api: api.Resource(ocv1.GroupVersion.WithResource("clusterextensions"))}, nil
}

// Get reads one. The error is that of the API server.
func (e *Extensions) Get(ctx context.Context, name string) (*ocv1.ClusterExtension, error) {
	found, err := e.api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %q: %w", name, err)
	}
	ext := &ocv1.ClusterExtension{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, ext); err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %q: %w", name, err)
	}
	return ext, nil
}

// Patch writes a JSON merge patch. With a resource version in it, it is refused with a
// conflict if the extension was changed since. The error is that of the API server.
func (e *Extensions) Patch(ctx context.Context, name string, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = e.api.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("changing ClusterExtension %q: %w", name, err)
	}
	return nil
}
