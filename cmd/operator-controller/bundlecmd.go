package main

import "github.com/spf13/cobra"

// newBundleCommand returns the commands for those who write or review bundles.
// They need no cluster.
func newBundleCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "bundle",
		Short: "Check and render bundles, and print the rights that they take",
		Long: `Check and render bundles, and print the rights that they take, without a cluster.

A bundle is a folder with manifests/ and metadata/, or an image that has them.`,
		Example: `  operator-controller bundle check ./bundle
  operator-controller bundle render ./bundle --namespace my-operator
  operator-controller bundle rbac ./bundle --namespace my-operator --service-account installer`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newBundleCheckCommand(), newBundleRenderCommand(), newBundleRBACCommand())
	return command
}
