// Package bundle contains the commands for authors and reviewers of bundles.
package bundle

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli"
)

// noCertificates is the value of the flag for [bundle.NoCertificates].
const noCertificates = "none"

const flagCertificates = "certificates"

// NewCommand returns the commands for authors and reviewers of bundles.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "bundle",
		Short: "Check, render, push, try and test bundles, and print the permissions that they require",
		Long: `Check, render, push, try and test bundles, and print the permissions that they require. The
commands try and test use a cluster, and so does rbac for an extension.

A bundle is a folder with manifests/ and metadata/, a Helm chart, or an image of one of these.`,
		Example: `  kubectl extension bundle check ./bundle
  kubectl extension bundle render ./bundle --namespace my-operator
  kubectl extension bundle rbac ./bundle --namespace my-operator --service-account installer
  kubectl extension bundle push ./bundle --registry registry.example/team/my-operator --tag v1.0.0
  kubectl extension bundle try ./bundle --registry registry.example/team/my-operator
  kubectl extension bundle test clusterextension/web`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCheckCommand(), newRenderCommand(), newRBACCommand(), newPushCommand(), newTestCommand())
	return command
}

// newCertificates is the flag for who issues the certificates of webhooks.
func newCertificates() *cli.Choice {
	return cli.NewChoice(flagCertificates, bundle.CertManager, bundle.ServiceCA, bundle.SelfManaged, noCertificates)
}

// providerOf is what the flag for certificates names.
func providerOf(certificates *cli.Choice) bundle.CertificateProvider {
	if certificates.String() == noCertificates {
		return bundle.NoCertificates
	}
	return bundle.CertificateProvider(certificates.String())
}

// taken gives the provider that the flag names. Where nobody has set the flag, it is told
// once that the certificates of webhooks may come from elsewhere.
func taken(command *cobra.Command, certificates *cli.Choice) func() (bundle.CertificateProvider, error) {
	told := command.Flags().Changed(flagCertificates)
	return func() (bundle.CertificateProvider, error) {
		if !told {
			told = true
			fmt.Fprintf(command.ErrOrStderr(), "the certificates of webhooks are taken to come from %s: --%s says from whom else, "+
				"and 'kubectl extension bundle rbac clusterextension/NAME' asks the cluster\n", certificates, flagCertificates)
		}
		return providerOf(certificates), nil
	}
}

// renderError is an error of the bundle with what to try next.
func renderError(err error, from string, config []byte) error {
	if _, ok := errors.AsType[*bundle.InvalidError](err); ok {
		err = fmt.Errorf("%w\nTry 'kubectl extension bundle check %s'", err, from)
	}
	if _, ok := errors.AsType[*bundle.ConfigError](err); ok && len(config) == 0 {
		err = fmt.Errorf("%w\nThe configuration is what the file has that --config names", err)
	}
	if _, ok := errors.AsType[*bundlesource.NoIssuerError](err); ok {
		err = fmt.Errorf("%w (--%s says who issues their certificates)", err, flagCertificates)
	}
	return cli.BundleError(err)
}
