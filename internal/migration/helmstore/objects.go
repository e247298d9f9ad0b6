package helmstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxObjects bounds the objects of a release.
const maxObjects = 10_000

// Objects decodes the manifest of a release, or of a hook, as the client of Helm does. Lists are replaced
// by their items, and empty documents are skipped.
func Objects(manifest string) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096) //nolint:mnd // how far it looks for JSON
	var found []*unstructured.Unstructured
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil && len(document) > 0 {
			err = utiljson.Unmarshal(document, &object.Object)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest of a release: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if !object.IsList() {
			found = append(found, object)
		} else if err := object.EachListItem(func(item runtime.Object) error {
			if one, isObject := item.(*unstructured.Unstructured); isObject {
				found = append(found, one)
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("reading a list in the manifest of a release: %w", err)
		}
		if len(found) > maxObjects {
			return nil, fmt.Errorf("the manifest of the release has more than %d objects", maxObjects)
		}
	}
}

// Manifest encodes objects as a manifest of Helm, in the given order.
func Manifest(objects []*unstructured.Unstructured) (string, error) {
	var text bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	return text.String(), nil
}
