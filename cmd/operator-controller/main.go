// Command operator-controller installs and upgrades Kubernetes extensions from
// catalogs, each as the ServiceAccount that its ClusterExtension declares.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is stamped by the linker.
var version = "unknown"

func main() {
	if err := newCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(exitCode(err))
	}
}

func newCommand() *cobra.Command {
	options := defaultOptions()
	command := &cobra.Command{
		Use:           "operator-controller",
		Short:         "Install and upgrade Kubernetes extensions from catalogs, each as its own ServiceAccount",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.complete(); err != nil {
				return misuse(command, err)
			}
			return run(command.Context(), options)
		},
	}
	options.bind(command.Flags())
	command.AddCommand(newVersionCommand())
	command.AddCommand(newCatalogCommand())
	command.AddCommand(newBundleCommand())
	command.AddCommand(newExplainCommand())
	command.AddCommand(newGraphCommand())
	command.AddCommand(newCRDCommand())
	command.SetVersionTemplate("{{.Version}}\n")
	return strict(command)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), version)
			return err
		},
	}
}
