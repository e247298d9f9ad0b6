package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// EachObject hands the objects of a file with documents, or lists of them, to use. The
// error is that of use, or a *program.UsageError.
func EachObject(data []byte, use func(*unstructured.Unstructured) error) error {
	const sniffed = 4096
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), sniffed)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &program.UsageError{Err: err}
		case object.IsList():
			err = object.EachListItem(func(item runtime.Object) error {
				element, ok := item.(*unstructured.Unstructured)
				if !ok {
					return fmt.Errorf("a list has an item of type %T", item)
				}
				return use(element)
			})
		default:
			err = use(object)
		}
		if err != nil {
			return err
		}
	}
}
