// Package migrate has the commands by which operators of classic OLM and releases of Helm become extensions.
package migrate

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/migration"
)

// NewCommand returns them.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Make operators of classic OLM and releases of Helm extensions, in place",
		Long: `Make operators that classic OLM has installed extensions, in place: custom resources,
Deployments and rights stay, and nothing is installed again. migrate helm does it for releases
of Helm.

Everything is done with your own rights.`,
		Example: `  kubectl extension migrate check --all
  kubectl extension migrate catalogs --apply`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCheckCommand(), newCatalogsCommand(), newRunCommand(), newCleanupCommand(), newRollbackCommand(), newHelmCommand())
	return command
}

// open reaches the cluster. The error may be a *program.UsageError.
func open(ctx context.Context, flags *cli.Cluster) (*migration.Cluster, error) {
	config, inspected, err := reach(ctx, flags)
	if err != nil {
		return nil, err
	}
	return migration.New(config, inspected)
}

// reach returns the configuration of the cluster, and the cluster as package inspect uses it. The error
// may be a *program.UsageError.
func reach(ctx context.Context, flags *cli.Cluster) (*rest.Config, *inspect.Cluster, error) {
	config, err := flags.Config()
	if err != nil {
		return nil, nil, err
	}
	inspected, err := flags.Inspect(ctx)
	return config, inspected, err
}
