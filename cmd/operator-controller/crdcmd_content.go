package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// maxDefinitions lets a file have all definitions of a large cluster, in bytes.
const maxDefinitions = 256 << 20

// definitionsByName are CustomResourceDefinitions by name.
type definitionsByName map[string]*apiextensionsv1.CustomResourceDefinition

// definitionContent reads definitions from files and bundles.
type definitionContent struct {
	namespace string
	content   contentFlags
}

func (c *definitionContent) bind(flags *pflag.FlagSet) {
	flags.StringVarP(&c.namespace, "namespace", "n", "default",
		"Namespace to install bundles to, as in spec.namespace. It matters to webhooks that convert objects, and to nothing else.")
	c.content.bind(flags)
}

// read returns the definitions of a file, a bundle folder or the image of a bundle.
func (c definitionContent) read(ctx context.Context, from string) (definitionsByName, error) {
	found := definitionsByName{}
	if info, err := os.Stat(from); err == nil && info.Mode().IsRegular() {
		if err := found.addFile(from); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		return found, nil
	}
	err := c.content.readBundle(ctx, from, func(files fs.FS) error {
		objects, err := c.render(files)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := found.add(object); err != nil {
				return err
			}
		}
		return nil
	})
	if _, ok := errors.AsType[*bundle.InvalidError](err); ok {
		err = fmt.Errorf("%w\nTry 'operator-controller bundle check %s'", err, from)
	}
	return found, err
}

// render makes the objects of a bundle: webhooks that convert objects are in its
// definitions only then. Which namespace is watched does not matter to them.
func (c definitionContent) render(files fs.FS) ([]*unstructured.Unstructured, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	options := bundle.Options{InstallNamespace: c.namespace, Certificates: bundle.CertManager}
	objects, err := bundle.Render(content, options)
	if _, ok := errors.AsType[*bundle.ConfigError](err); ok {
		options.Config.WatchNamespace = "any"
		return bundle.Render(content, options)
	}
	return objects, err
}

// addFile adds the definitions of a file with documents or lists of them.
func (d definitionsByName) addFile(name string) error {
	data, err := readFile(name, maxDefinitions)
	if err != nil {
		return err
	}
	const sniffed = 4096
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), sniffed)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			if len(d) == 0 {
				return errors.New("there is no CustomResourceDefinition in it")
			}
			return nil
		case err != nil:
			return err
		case object.IsList():
			err = object.EachListItem(func(item runtime.Object) error {
				element, ok := item.(*unstructured.Unstructured)
				if !ok {
					return fmt.Errorf("a list has an item of type %T", item)
				}
				return d.add(element)
			})
		default:
			err = d.add(object)
		}
		if err != nil {
			return err
		}
	}
}

// add adds the object if it is a definition.
func (d definitionsByName) add(object *unstructured.Unstructured) error {
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
