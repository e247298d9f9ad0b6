package crdcheck

import (
	"errors"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Definitions are CustomResourceDefinitions by name.
type Definitions map[string]*apiextensionsv1.CustomResourceDefinition

// OfBundle has the definitions of a bundle that is installed to the namespace: webhooks
// that convert objects are in them only then. Which namespace is watched does not matter
// to them. Those of a chart are as its default values have them.
func OfBundle(files fs.FS, namespace string, charts bundle.ChartEngine) (Definitions, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	options := bundle.Options{InstallNamespace: namespace, Certificates: bundle.CertManager, Charts: charts}
	rendered, err := bundle.Render(content, options)
	if _, ok := errors.AsType[*bundle.ConfigError](err); ok {
		options.Config.WatchNamespaces = []string{"any"}
		rendered, err = bundle.Render(content, options)
	}
	if err != nil {
		return nil, err
	}
	found := Definitions{}
	for _, object := range rendered.Objects {
		if err := found.Add(object); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Add adds the object if it is a definition.
func (d Definitions) Add(object *unstructured.Unstructured) error {
	kind := schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
	gvk := object.GroupVersionKind()
	switch {
	case gvk.GroupKind() != kind:
		return nil
	case gvk.Version != "v1":
		return fmt.Errorf("CustomResourceDefinition %q is of version %q; only v1 can be compared", object.GetName(), gvk.Version)
	case d[object.GetName()] != nil:
		return fmt.Errorf("CustomResourceDefinition %q is there twice", object.GetName())
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return fmt.Errorf("CustomResourceDefinition %q: %w", object.GetName(), err)
	}
	d[crd.Name] = crd
	return nil
}
