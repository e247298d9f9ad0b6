package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Request are the flags that say what spec.source.catalog of a ClusterExtension does.
type Request struct {
	// Package is required.
	Package string

	versions string
	channels []string
	policy   *Choice
}

// Bind gives them to a command, of which the package is required as the text says.
func (r *Request) Bind(command *cobra.Command, required string) {
	flags := command.Flags()
	flags.StringVar(&r.Package, "package", "", "Name of the package. "+required)
	flags.StringVar(&r.versions, "version", "", "Range that the version has to be in, such as 1.x.")
	flags.StringArrayVar(&r.channels, "channel", nil, "Channel to choose from. Repeat it for several; by default all.")
	r.policy = NewChoice("policy", resolve.CatalogProvided, resolve.SelfCertified)
	r.policy.Bind(command, "", "Which upgrades there are: those that the catalog declares (CatalogProvided), or any (SelfCertified).")
}

// Parse is what the flags ask for. The error says which of them makes no sense.
func (r *Request) Parse() (resolve.Request, error) {
	if r.Package == "" {
		return resolve.Request{}, errors.New("--package is required")
	}
	versions, err := resolve.ParseRange(r.versions)
	return resolve.Request{Package: r.Package, Range: versions, Channels: r.channels, Policy: resolve.Policy(r.policy.String())}, err
}
