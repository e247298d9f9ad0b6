package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestMovedTagChangesNothing moves the tag of an installed bundle to other
// content: another configuration is applied to the old content all the same.
func TestMovedTagChangesNothing(t *testing.T) {
	t.Parallel()
	const name = "moved-tag"
	wanted := operators(name, "1.0.0")
	publish(t, wanted...)
	extend(t, name)
	installed(t, name, "1.0.0")

	other := wanted[0]
	other.ConfigMaps = append(slices.Clone(other.ConfigMaps), "smuggled")
	pushBundle(t, wanted[0], other.Bundle())
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Config = &ocv1.ClusterExtensionConfig{
			ConfigType: ocv1.ClusterExtensionConfigTypeInline,
			Inline:     &apiextensionsv1.JSON{Raw: []byte(`{"deploymentConfig":{"nodeSelector":{"kubernetes.io/os":"linux"}}}`)},
		}
	})
	eventually(t, "the new configuration", func(ctx context.Context) error {
		found := &appsv1.Deployment{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: name, Name: name}, found); err != nil {
			return err
		}
		if selector := found.Spec.Template.Spec.NodeSelector; selector["kubernetes.io/os"] != "linux" {
			return fmt.Errorf("node selector is %v", selector)
		}
		return nil
	})
	installed(t, name, "1.0.0")
	told(t, name, corev1.EventTypeWarning, "ImageMoved", "has moved from")
	err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "smuggled"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("err = %v, want that content of the moved tag is not there", err)
	}
}
