package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// maxConfig is more than the API server takes for an object, in bytes.
const maxConfig = 4 << 20

// ReadConfig reads the file that a flag names; nothing if there is none. The error
// is an *program.UsageError.
func ReadConfig(command *cobra.Command, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	config, err := ReadFile(command, path, maxConfig)
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(config, new(map[string]any)); err != nil {
		return nil, &program.UsageError{Err: fmt.Errorf("%s is no configuration: %w", path, err)}
	}
	return config, nil
}
