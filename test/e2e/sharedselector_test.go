package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// publishScaffold publishes an operator with webhooks whose pods have the label that scaffolds set.
func publishScaffold(t *testing.T, name string) {
	t.Helper()
	operator := testkit.Operator{Package: name, Version: "1.0.0"}
	files := operator.BundleWithWebhooks()
	for _, file := range []string{"manifests/csv.yaml", "manifests/service.yaml"} {
		files[file].Data = bytes.ReplaceAll(files[file].Data, []byte("{app: "+name+"}"), []byte("{control-plane: controller-manager}"))
	}
	pushBundle(t, operator, files)
	publishCatalog(t, name, testkit.Catalog(registryHost, operator))
}

// selectorOf is the one of the Service in front of the webhooks of an operator.
func selectorOf(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	service := &corev1.Service{}
	exists(t, service, namespace, testkit.Operator{Package: name}.WebhookService())
	return service.Spec.Selector
}

// TestF29SharedSelector is F29: two operators of one namespace with the labels of the scaffold. Services of
// the webhooks of both select their own pods alone in the end, the one of the first operator when its pods
// are labelled. Nothing is written at rest.
func TestF29SharedSelector(t *testing.T) {
	t.Parallel()
	const first, second = "f29-first", "f29-second"
	publishScaffold(t, first)
	publishScaffold(t, second)
	extend(t, first)
	installed(t, first, "1.0.0")
	if selector := selectorOf(t, first, first); !maps.Equal(selector, map[string]string{"control-plane": "controller-manager"}) {
		t.Errorf("alone, it selects %v", selector)
	}
	deploymentAvailable(t, first, first)
	extendOnly(t, second, func(extension *ocv1.ClusterExtension) { extension.Spec.Namespace = first })
	installed(t, second, "1.0.0")
	if selector := selectorOf(t, first, second); selector[bundle.LabelWorkload] != second {
		t.Errorf("the second one selects %v", selector)
	}
	eventually(t, "the pods of the first one are labelled", func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		exists(t, deployment, first, first)
		if deployment.Spec.Template.Labels[bundle.LabelWorkload] != first {
			return errors.New("not yet")
		}
		return nil
	})
	eventually(t, "the first one selects its own pods", func(context.Context) error {
		if selector := selectorOf(t, first, first); selector[bundle.LabelWorkload] != first {
			return fmt.Errorf("it selects %v", selector)
		}
		return nil
	})
	deploymentAvailable(t, first, second)
	condition(t, first, ocv1.TypeAvailable, "True Available: all workloads are available")
	since := time.Now()
	update(t, first, func(extension *ocv1.ClusterExtension) { extension.Annotations = map[string]string{"a": "b"} })
	eventually(t, "a reconcile", func(context.Context) error {
		if passesOver(t, first, since) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	for _, request := range requestsOfExtensions(t, since) {
		if request.IsWrite() && request.ObjectRef.Namespace == first {
			t.Errorf("at rest: %s", request)
		}
	}
}
