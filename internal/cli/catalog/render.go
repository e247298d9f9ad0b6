package catalog

import (
	"errors"
	"fmt"
	"io"
	"text/template"

	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/catalogrender"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// maxTemplate bounds the template of a catalog in bytes: with the longest references it names
// more bundles than are rendered.
const maxTemplate = 4 << 20

// levelCSVMetadata is the one migration there is.
const levelCSVMetadata = "bundle-object-to-csv-metadata"

// rendering is the command line of catalog render and catalog template.
type rendering struct {
	output  *cli.Choice
	images  cli.Images
	imageOf string
	pkg     string
	level   *cli.Choice
}

func newRendering() *rendering {
	return &rendering{output: cli.NewOutput(cli.JSON, cli.YAML), level: cli.NewChoice("migrate-level", migrations.NoMigrations, levelCSVMetadata)}
}

func (o *rendering) bind(command *cobra.Command) {
	o.output.Bind(command, "o", "Format of the catalog.")
	o.level.Bind(command, "", "Last migration of what is rendered: the second one replaces whole objects of bundles by the metadata that is read of them.")
	o.images.Bind(command.Flags())
	command.Flags().StringVar(&o.pkg, "chart-package", "", "Package of Helm charts; by default the name of each.")
	cli.NoFiles(command, "chart-package")
}

func newRenderCommand() *cobra.Command {
	o := newRendering()
	command := &cobra.Command{
		Use:   "render (FOLDER | CHART | IMAGE)...",
		Short: "Print the catalog of catalogs and bundles",
		Long: `Print a file-based catalog with all that is in the catalogs and the bundles that are named,
each of them a folder or an image. A bundle may be a Helm chart, also a packaged one. Of a
bundle, that is its olm.bundle; packages and channels are yours to write, or those of a
template. Which image a bundle in a folder will be, nothing but --bundle-image tells; without
an image it cannot be installed, nor be migrated.

What is printed is what opm 1.73 prints, which knows no charts. Images are pulled as the system does it: registries,
mirrors and credentials are its.`,
		Example: `  kubectl extension catalog render registry.example/bundle:v1.2.0 >> catalog/sample-operator.json
  kubectl extension catalog render ./bundle --bundle-image 'registry.example/{{.Package}}:v{{.Version}}' -o yaml
  kubectl extension catalog render oci.example/charts/web:1.2.0 --chart-package web-server
  kubectl extension catalog render registry.example/catalog:latest`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			renderer, err := o.renderer(command)
			if err != nil {
				return program.Misuse(command, err)
			}
			rendered, err := renderer.All(command.Context(), args)
			if err != nil {
				return err
			}
			return o.print(command.OutOrStdout(), rendered)
		},
	}
	command.Flags().StringVar(&o.imageOf, "bundle-image", "",
		"Image of a bundle in a folder, which does not tell it, with {{.Package}}, {{.Name}} and {{.Version}} for what it is of.")
	o.bind(command)
	return command
}

func newTemplateCommand() *cobra.Command {
	o := newRendering()
	command := &cobra.Command{
		Use:   "template FILE",
		Short: "Print the catalog that a template stands for",
		Long: `Print the file-based catalog that a template stands for: one with the schema
olm.template.basic, which has a catalog with images in the place of bundles, or olm.semver,
which has images of bundles alone, and gets its channels from their versions. FILE may be - for
standard input.

What is printed is what opm 1.73 prints. Images are pulled as by "catalog render".`,
		Example: `  kubectl extension catalog template sample-operator.yaml > catalog/sample-operator.json`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			renderer, err := o.renderer(command)
			if err != nil {
				return program.Misuse(command, err)
			}
			text, err := cli.ReadFile(command, args[0], maxTemplate)
			if err != nil {
				return program.Misuse(command, err)
			}
			rendered, err := renderer.Template(command.Context(), text)
			if err != nil {
				return fmt.Errorf("template %s: %w", args[0], err)
			}
			return o.print(command.OutOrStdout(), rendered)
		},
	}
	o.bind(command)
	return command
}

func (o *rendering) renderer(command *cobra.Command) (catalogrender.Renderer, error) {
	logrus.SetOutput(io.Discard) // the library tells there how it reads bundles
	renderer := catalogrender.Renderer{
		Images:       o.images.Bundles().Images,
		ChartPackage: o.pkg,
		Note: func(ref, what string) {
			fmt.Fprintln(command.ErrOrStderr(), cli.Printable(ref+": "+what))
		},
	}
	if problems := validation.IsDNS1123Subdomain(o.pkg); o.pkg != "" && len(problems) > 0 {
		return renderer, fmt.Errorf("--chart-package %q: %s", o.pkg, problems[0])
	}
	var err error
	if flag := command.Flags().Lookup("bundle-image"); flag != nil && flag.Changed {
		if o.imageOf == "" {
			return renderer, errors.New("--bundle-image is empty: leave it out, or name the image")
		}
		if renderer.ImageOf, err = template.New("bundle-image").Parse(o.imageOf); err != nil {
			return renderer, fmt.Errorf("--bundle-image: %w", err)
		}
	}
	renderer.Migrations, err = migrations.NewMigrations(o.level.String())
	return renderer, err
}

func (o *rendering) print(to io.Writer, rendered *declcfg.DeclarativeConfig) error {
	if o.output.String() == cli.YAML {
		return declcfg.WriteYAML(*rendered, to)
	}
	return declcfg.WriteJSON(*rendered, to)
}
