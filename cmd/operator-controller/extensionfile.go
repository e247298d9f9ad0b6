package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
)

// maxManifest is more than anybody writes around a ClusterExtension, in bytes.
const maxManifest = 4 << 20

// readExtension reads the one ClusterExtension of a file that may have other objects
// too. What only the cluster says of it is left out.
func readExtension(path string, stdin io.Reader) (*ocv1.ClusterExtension, error) {
	var data []byte
	var err error
	if path == catalogsource.Stdin {
		data, err = readBounded(stdin, "standard input", maxManifest)
	} else {
		data, err = readFile(path, maxManifest)
	}
	if err != nil {
		return nil, err
	}
	const sniffed = 4096
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), sniffed)
	var found *ocv1.ClusterExtension
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF) && found == nil:
			return nil, errors.New("there is no ClusterExtension in it")
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		case object.GroupVersionKind() != ocv1.GroupVersion.WithKind("ClusterExtension"):
			continue
		case found != nil:
			return nil, errors.New("there is more than one ClusterExtension in it")
		}
		if found, err = extensionOf(object); err != nil {
			return nil, err
		}
	}
}

// extensionOf refuses what the API server would refuse for its form.
func extensionOf(object *unstructured.Unstructured) (*ocv1.ClusterExtension, error) {
	ext := &ocv1.ClusterExtension{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, ext, true); err != nil {
		return nil, fmt.Errorf("ClusterExtension %q: %w", object.GetName(), err)
	}
	for _, field := range []struct{ name, value string }{
		{"metadata.name", ext.Name}, {"spec.namespace", ext.Spec.Namespace}, {"spec.serviceAccount.name", ext.Spec.ServiceAccount.Name},
	} {
		if problems := validation.IsDNS1123Subdomain(field.value); len(problems) > 0 {
			return nil, fmt.Errorf("ClusterExtension %q: %s %q: %s", ext.Name, field.name, field.value, problems[0])
		}
	}
	// Whoever had it printed had these from another time.
	ext.UID, ext.Status = "", ocv1.ClusterExtensionStatus{}
	return ext, nil
}
