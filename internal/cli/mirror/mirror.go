// Package mirror has the command that copies what a cluster without network needs of a
// catalog: a catalog, packages of it, a registry -> the images there, and what tells clusters
// so.
package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagecopy"
	"github.com/clusterextensions/operator-controller/internal/mirror"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

const help = `Copy a catalog with the images of its packages to another registry, for clusters without
network: the image of the catalog, those of bundles, and all that the catalog names as related to
them, each with its signatures and attestations, and for all platforms. Without PACKAGE these are
all packages of the catalog.

Without --version the bundles are those that are installed today: the head of each channel, and the
highest version. An extension that is installed upgrades along the versions in between: --version has
those of a range.

The catalog is copied whole, so that its digest and its signatures stay valid. It offers its other
packages too, whose images are not there. Images that no object of the catalog names are not known:
those that a Helm chart runs, for one.

Names do not change. What is printed tells nodes and the controller where they are now: a
registries.conf, and mirror sets for OpenShift. Give all packages each time that you do this, as what
is printed is about these alone. What the registry has already is not sent again.

Registries are asked with the credentials that you have for them on this machine, those of docker
login or podman login, and sources by its registries.conf.`

// command is the command line of mirror.
type command struct {
	catalog   string
	to        string
	channels  []string
	versions  string
	dryRun    bool
	plainHTTP bool
	images    cli.Images
	output    *cli.Choice
}

// Formats of what is printed.
const toml = "toml"

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := command{output: cli.NewOutput(cli.Text, toml, cli.YAML, cli.JSON)}
	made := &cobra.Command{
		Use:   "mirror [PACKAGE...] --catalog IMAGE --to REGISTRY",
		Short: "Copy a catalog and the images of its packages to another registry",
		Long:  help,
		Example: `  kubectl extension mirror sample-operator --catalog quay.io/operatorhubio/catalog:latest --to mirror.example/olm --dry-run
  kubectl extension mirror sample-operator --catalog quay.io/operatorhubio/catalog:latest --to mirror.example/olm
  kubectl extension mirror --catalog registry.example/catalog:v1 --to localhost:5000 -o yaml`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              o.run,
	}
	flags := made.Flags()
	flags.StringVar(&o.catalog, "catalog", "", "Image of the catalog. Required.")
	flags.StringVar(&o.to, "to", "", "Registry to copy to, and a path in it if there is to be one. Required.")
	flags.StringArrayVar(&o.channels, "channel", nil, "Channel to take bundles of; by default all. Repeat it for several.")
	flags.StringVar(&o.versions, "version", "", "Range of the versions to copy, such as \">=1.2.0\"; by default the newest.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Copy nothing: print the images, and what they take.")
	flags.BoolVar(&o.plainHTTP, "plain-http", false, "The registry that is copied to speaks no TLS. One on this machine need not, also without this.")
	o.images.Bind(flags)
	o.output.Bind(made, "o", "What to print: text is all of it, toml registries.conf, yaml and json mirror sets.")
	cli.NoFiles(made, "catalog", "to", "channel", "version")
	return made
}

// wish checks the command line.
func (o *command) wish(packages []string) (mirror.Wish, error) {
	wish := mirror.Wish{Channels: o.channels}
	switch {
	case o.catalog == "":
		return wish, errors.New("--catalog is required: it is the image of the catalog")
	case o.to == "":
		return wish, errors.New("--to is required: it is the registry to copy to")
	case len(packages) == 0 && len(o.channels) > 0:
		return wish, errors.New("--channel is for packages that are named")
	}
	if err := image.CheckReference(o.catalog); err != nil {
		return wish, fmt.Errorf("--catalog: %w", err)
	}
	// Any name below it will do: the place itself need not be a repository.
	if err := imagecopy.CheckRepository(o.to + "/catalog"); err != nil {
		return wish, fmt.Errorf("--to takes a registry and a path such as mirror.example/olm, without https:// and without a tag, and not %q", o.to)
	}
	if o.versions != "" {
		versions, err := resolve.ParseRange(o.versions)
		if err != nil {
			return wish, fmt.Errorf("--version: %w", err)
		}
		wish.Versions = &versions
	}
	return wish, nil
}

func (o *command) run(made *cobra.Command, packages []string) error {
	wish, err := o.wish(packages)
	if err != nil {
		return program.Misuse(made, err)
	}
	found, err := o.read(made.Context(), slices.Compact(slices.Sorted(slices.Values(packages))), wish)
	if err != nil {
		return err
	}
	if found.others > 0 {
		fmt.Fprintf(made.ErrOrStderr(), "the catalog is copied whole, and offers %s whose images are not: they cannot be installed from there\n",
			cli.Counted(found.others, "other package"))
	}
	place := mirror.Place(o.to)
	mappings, err := place.Mappings(found.refs())
	if err != nil {
		return err
	}
	results := o.copy(made, found.jobs(place, o.images.Config()))
	if err := o.print(made, found, results, mappings); err != nil {
		return err
	}
	return missing(results)
}

// copy copies the images, or looks at what there would be to copy.
func (o *command) copy(made *cobra.Command, jobs []imagecopy.Job) []imagecopy.Result {
	copier := imagecopy.New(imagecopy.Config{CertsDir: o.images.Config().CertsDir, Realms: o.images.Realms(), PlainHTTP: o.plainHTTP})
	tell := func(r imagecopy.Result) { fmt.Fprintln(made.ErrOrStderr(), cli.Printable(progress(r, o.dryRun))) }
	if o.dryRun {
		return copier.List(made.Context(), jobs, tell)
	}
	// The catalog comes last: whoever polls it finds what it names.
	last := len(jobs) - 1
	results := copier.Copy(made.Context(), jobs[:last], tell)
	return append(results, copier.Copy(made.Context(), jobs[last:], tell)...)
}

func progress(r imagecopy.Result, dryRun bool) string {
	switch {
	case r.Err != nil:
		return fmt.Sprintf("missing  %s: %v", r.Name, r.Err)
	case dryRun:
		return "found    " + r.Name
	case r.Sent == 0:
		return "is there " + r.Name
	}
	return "copied   " + r.Name
}

// missing is an error with the images that are not there, sorted.
func missing(results []imagecopy.Result) error {
	left := imagecopy.Missing(results)
	if len(left) == 0 {
		return nil
	}
	lines := []string{cli.Counted(len(left), "image") + " missing:"}
	for _, one := range left {
		lines = append(lines, "  "+one.Name+": "+cli.Printable(one.Err.Error()))
	}
	return errors.New(strings.Join(lines, "\n"))
}
