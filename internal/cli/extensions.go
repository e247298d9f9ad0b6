package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// Extensions are the ClusterExtensions of a cluster, with the rights of the person who calls.
type Extensions struct{ api, watches dynamic.ResourceInterface }

// NamedExtension is for a command that takes the name of one, and gives it with a way to all,
// which reaches the cluster with the first request.
func (c *Cluster) NamedExtension(command *cobra.Command, args []string) (string, *Extensions, error) {
	name, err := ExtensionName(args)
	if err != nil {
		return "", nil, program.Misuse(command, err)
	}
	config, err := c.Config()
	if usage, ok := errors.AsType[*program.UsageError](err); ok {
		return "", nil, program.Misuse(command, usage.Err)
	}
	if err != nil {
		return "", nil, err
	}
	extensions, err := newExtensions(config)
	return name, extensions, err
}

// AllExtensions gives a command a way to all of them.
func (c *Cluster) AllExtensions(command *cobra.Command) (*Extensions, error) {
	config, err := c.Config()
	if usage, ok := errors.AsType[*program.UsageError](err); ok {
		return nil, program.Misuse(command, usage.Err)
	}
	if err != nil {
		return nil, err
	}
	return newExtensions(config)
}

// newExtensions has a client for watches besides, which end when nobody waits for them any more.
func newExtensions(config *rest.Config) (*Extensions, error) {
	endless := rest.CopyConfig(config)
	endless.Timeout = 0
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	watches, err := dynamic.NewForConfig(endless)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	resource := ocv1.GroupVersion.WithResource("clusterextensions")
	return &Extensions{api: api.Resource(resource), watches: watches.Resource(resource)}, nil
}

// Get reads one. The error is that of the API server.
func (e *Extensions) Get(ctx context.Context, name string) (*ocv1.ClusterExtension, error) {
	found, err := e.api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %q: %w", name, err)
	}
	return typed(found)
}

func typed(object *unstructured.Unstructured) (*ocv1.ClusterExtension, error) {
	ext := &ocv1.ClusterExtension{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, ext); err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %q: %w", object.GetName(), err)
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
	_, err = e.api.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: inspect.FieldManager})
	if err != nil {
		return fmt.Errorf("changing ClusterExtension %q: %w", name, err)
	}
	return nil
}
