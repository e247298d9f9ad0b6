package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// maxManifest is more than anybody writes around a ClusterExtension, in bytes.
const maxManifest = 4 << 20

// FlagFilename is the flag for a file with objects.
const FlagFilename = "filename"

// ReadExtension reads the one ClusterExtension of a file that may have other objects
// too. What only the cluster says of it is left out. The error is an *program.UsageError.
func ReadExtension(command *cobra.Command, path string) (*ocv1.ClusterExtension, error) {
	ext, err := readExtension(command.Context(), path, command.InOrStdin())
	if err != nil {
		return nil, &program.UsageError{Err: fmt.Errorf("--%s %s: %w", FlagFilename, path, err)}
	}
	return ext, nil
}

func readExtension(ctx context.Context, path string, stdin io.Reader) (*ocv1.ClusterExtension, error) {
	data, err := readFile(ctx, path, stdin, maxManifest)
	if err != nil {
		return nil, err
	}
	if err := checkKeys(data); err != nil {
		return nil, err
	}
	var found *ocv1.ClusterExtension
	err = EachObject(data, func(object *unstructured.Unstructured) (err error) {
		if object.GroupVersionKind() != ocv1.GroupVersion.WithKind("ClusterExtension") {
			return nil
		}
		if found != nil {
			return errors.New("there is more than one ClusterExtension in it")
		}
		found, err = extensionOf(ctx, object)
		return err
	})
	if err == nil && found == nil {
		err = errors.New("there is no ClusterExtension in it")
	}
	return found, err
}

// checkKeys refuses YAML that has a key twice, as the API server does.
func checkKeys(data []byte) error {
	if utilyaml.IsJSONBuffer(data) {
		return nil
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = yaml.UnmarshalStrict(document, new(any))
		}
		if err != nil {
			return err
		}
	}
}

// extensionOf refuses what the API server would refuse for its form, and for its values.
func extensionOf(ctx context.Context, object *unstructured.Unstructured) (*ocv1.ClusterExtension, error) {
	ext := &ocv1.ClusterExtension{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, ext, true); err != nil {
		return nil, fmt.Errorf("ClusterExtension %q: %w", object.GetName(), err)
	}
	for _, field := range []struct {
		name, value string
		check       func(string) []string
	}{
		{"metadata.name", ext.Name, validation.IsDNS1123Subdomain},
		{"spec.namespace", ext.Spec.Namespace, validation.IsDNS1123Label},
		{"spec.serviceAccount.name", ext.Spec.ServiceAccount.Name, validation.IsDNS1123Subdomain},
	} {
		if problems := field.check(field.value); len(problems) > 0 {
			return nil, fmt.Errorf("ClusterExtension %q: %s %q: %s", ext.Name, field.name, field.value, problems[0])
		}
	}
	if err := checkSchema(ctx, object); err != nil {
		return nil, fmt.Errorf("ClusterExtension %q: %w", ext.Name, err)
	}
	// Whoever had it printed had these from another time.
	ext.UID, ext.Status = "", ocv1.ClusterExtensionStatus{}
	return ext, nil
}
