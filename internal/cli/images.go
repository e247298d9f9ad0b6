package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/realm"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// Images are the flags of commands that pull images.
type Images struct{ config image.Config }

// Bind gives them to a command.
func (i *Images) Bind(flags *pflag.FlagSet) {
	flags.Var(&path{to: &i.config.CertsDir, check: checkFolder}, "pull-cas-dir", "Directory of certificates for pulling images.")
	flags.Var(&path{to: &i.config.PolicyFile, check: image.CheckPolicy}, "signature-policy",
		"Signature policy file for images; by default that of the system, and without one any image is read.")
	flags.Var(&i.config.Realms, realm.Flag, realm.Usage)
}

func checkFolder(name string) error {
	_, err := os.ReadDir(name)
	return err
}

// path is a flag for what has to be readable.
type path struct {
	to    *string
	check func(string) error
}

func (p *path) String() string {
	if p.to == nil { // help texts ask a path that is zero
		return ""
	}
	return *p.to
}

// Type is what help texts show for the value.
func (*path) Type() string { return "string" }

// Set takes what can be read; empty is for what is so without the flag.
func (p *path) Set(value string) error {
	*p.to = value
	if value == "" {
		return nil
	}
	return p.check(value)
}

// Realms are where credentials of registries may go.
func (i *Images) Realms() realm.Realms { return i.config.Realms }

// Config is how images are pulled. Dir is not set.
func (i *Images) Config() image.Config { return i.config }

// Bundles reads bundles.
func (i *Images) Bundles() bundlesource.Reader { return bundlesource.Reader{Images: i.config} }

// Explain judges an image by ImagePolicies, and by the signature policy, and says why. The error
// is that of [image.Explain].
func (i *Images) Explain(ctx context.Context, policies *imagepolicy.Set, request image.Request) (image.Explanation, error) {
	config := i.config
	config.Policies = func() (*imagepolicy.Set, error) { return policies, nil }
	return image.Explain(ctx, config, request)
}

// BundleError makes an error of [bundlesource] about what the command line names one of
// usage.
func BundleError(err error) error {
	if _, ok := errors.AsType[*bundlesource.InvalidError](err); ok {
		return &program.UsageError{Err: err}
	}
	return err
}

// ClusterIssuer is who issues certificates on a cluster that serves the kinds of the mapper.
func ClusterIssuer(mapper meta.RESTMapper) (bundle.CertificateProvider, error) {
	provider, err := webhookcert.ProviderOn(mapper)
	if err != nil {
		err = fmt.Errorf("who issues certificates on the cluster is not known: %w", err)
	}
	return provider, err
}
