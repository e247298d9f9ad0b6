// Command operator-controller installs and upgrades Kubernetes extensions from
// catalogs, each as the ServiceAccount that its ClusterExtension declares.
package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	// An image need not have root certificates: without any, these are taken.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// version is stamped by the linker, and empty where that was not done.
var version string

func currentVersion() string { return program.Version(version) }

func main() { program.Run(newCommand()) }

func newCommand() *cobra.Command {
	options := defaultOptions()
	command := &cobra.Command{
		Use:   "operator-controller",
		Short: "Install and upgrade Kubernetes extensions from catalogs, each as its own ServiceAccount",
		Args:  checkArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.complete(); err != nil {
				return program.Misuse(command, err)
			}
			return run(command.Context(), options)
		},
	}
	options.bind(command.Flags())
	return program.New(command, currentVersion())
}

// checkArgs takes none, and says where the commands for people are.
func checkArgs(command *cobra.Command, args []string) error {
	err := cobra.NoArgs(command, args)
	if err != nil && slices.Contains([]string{"bundle", "catalog", "crd", "explain", "graph"}, args[0]) {
		return fmt.Errorf("%w: it is kubectl extension %s", err, args[0])
	}
	return err
}
