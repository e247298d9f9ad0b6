// Package patches_test holds, against a real API server, that a patch is sent for an object
// if and only if it would change what is stored: of each kind that the API server has, and
// of all objects of real bundles.
package patches_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/test/cluster"
)

// patience is how long the API server may take until it serves a kind.
const patience = time.Minute

// What all tests share.
var (
	theCluster *cluster.Cluster
	admin      dynamic.Interface
	mapper     meta.RESTMapper

	// ownerUID is that of the extension to which all objects belong.
	ownerUID types.UID
)

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(m, cluster.Options{}, prepare))
}

func prepare(ctx context.Context, started *cluster.Cluster) error {
	theCluster = started
	httpClient, err := rest.HTTPClientFor(started.RESTConfig())
	if err != nil {
		return err
	}
	if mapper, err = apiutil.NewDynamicRESTMapper(started.RESTConfig(), httpClient); err != nil {
		return err
	}
	if admin, err = dynamic.NewForConfigAndClient(quick(started.RESTConfig()), httpClient); err != nil {
		return err
	}
	for _, file := range []string{
		"../../config/crd/bases/olm.operatorframework.io_clusterextensions.yaml",
		filepath.Join("testdata", "definitions", "widgets.yaml"),
	} {
		made, err := manifests(file)
		if err != nil {
			return err
		}
		if err := define(ctx, made[0]); err != nil {
			return err
		}
	}
	extension := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"namespace":      metav1.NamespaceDefault,
		"serviceAccount": map[string]any{"name": "installer"},
		"source":         map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": "p"}},
	}}}
	extension.SetAPIVersion("olm.operatorframework.io/v1")
	extension.SetKind(object.OwnerKind)
	extension.SetName(extensionName)
	if extension, err = admin.Resource(object.OwnerResource).Create(ctx, extension, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the owner: %w", err)
	}
	ownerUID = extension.GetUID()
	return nil
}

// quick leaves it to the API server how many requests it takes, and says nothing of its
// warnings.
func quick(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// define makes a definition, and waits until its kind is served.
func define(ctx context.Context, definition *unstructured.Unstructured) error {
	name := definition.GetName()
	if _, err := admin.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the definition %q: %w", name, err)
	}
	return established(ctx, name)
}

// established waits until the kind of a definition is served.
func established(ctx context.Context, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		found, err := admin.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		for _, condition := range conditions {
			condition, _ := condition.(map[string]any)
			if condition["type"] == "Established" && condition["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %q to be established: %w", name, err)
	}
	return nil
}

// manifests reads the objects in a file.
func manifests(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if string(data) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
