package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// Images are the flags of commands that pull images.
type Images struct{ config image.Config }

// Bind gives them to a command.
func (i *Images) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&i.config.CertsDir, "pull-cas-dir", "", "Directory of certificates for pulling images.")
	flags.StringVar(&i.config.PolicyFile, "signature-policy", "",
		"Signature policy file for images; by default that of the system, and without one any image is read.")
}

// Bundles reads bundles.
func (i *Images) Bundles() bundlesource.Reader { return bundlesource.Reader{Images: i.config} }

// BundleError makes an error of [bundlesource] about what the command line names one of
// usage.
func BundleError(err error) error {
	if invalid, ok := errors.AsType[*bundlesource.InvalidError](err); ok {
		return &program.UsageError{Err: invalid}
	}
	return err
}
