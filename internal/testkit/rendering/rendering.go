// Package rendering is for tests that render bundles and look at their objects alone.
package rendering

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Objects are those of a rendering without its hooks, for a call inside of the call.
func Objects(rendered bundle.Rendered, err error) ([]*unstructured.Unstructured, error) {
	return rendered.Objects, err
}
