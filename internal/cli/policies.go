package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/policyfile"
)

// ReadPolicies reads the ImagePolicies of files, together with the Secrets that are there. The
// error is a *program.UsageError if they cannot be read, or if there is no policy.
func ReadPolicies(command *cobra.Command, paths []string) (*policyfile.File, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		data, err := ReadFile(command, path, maxManifest)
		if err != nil {
			return nil, err
		}
		err = checkKeys(data)
		if err == nil {
			err = EachObject(data, func(object *unstructured.Unstructured) error {
				objects = append(objects, object)
				return nil
			})
		}
		if err != nil {
			return nil, &program.UsageError{Err: fmt.Errorf("%s: %w", path, err)}
		}
	}
	file, err := policyfile.Read(command.Context(), objects)
	if errors.Is(err, policyfile.ErrNoPolicy) {
		err = &program.UsageError{Err: fmt.Errorf("%s: %w", strings.Join(paths, ", "), err)}
	}
	return file, err
}
