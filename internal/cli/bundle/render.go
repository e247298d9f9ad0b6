package bundle

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// rendering are the flags for how a bundle is rendered.
type rendering struct {
	namespace    string
	name         string
	config       string
	certificates *cli.Choice
	images       cli.Images
}

// check judges the flags.
func (r *rendering) check() error {
	if r.namespace == "" {
		return errors.New("--namespace is required: it is where the bundle would be installed")
	}
	if problems := validation.IsDNS1123Label(r.namespace); len(problems) > 0 {
		return fmt.Errorf("no namespace can have the name %q: %s", r.namespace, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(r.name); r.name != "" && len(problems) > 0 {
		return fmt.Errorf("no ClusterExtension can have the name %q: %s", r.name, problems[0])
	}
	return nil
}

// read reads the configuration that the flags name.
func (r *rendering) read(command *cobra.Command) (bundlesource.Rendering, error) {
	config, err := cli.ReadConfig(command, r.config)
	return bundlesource.Rendering{
		Namespace: r.namespace, Config: config, Certificates: taken(command, r.certificates), Release: bundle.ChartRelease{Name: r.name},
	}, err
}

// render is the command line of bundle render.
type render struct {
	rendering

	output *cli.Choice
}

func newRenderCommand() *cobra.Command {
	o := render{rendering: rendering{certificates: newCertificates()}, output: cli.NewOutput(cli.YAML, cli.JSON)}
	command := &cobra.Command{
		Use:   "render DIR|IMAGE --namespace NAMESPACE",
		Short: "Print the objects of which an extension would consist",
		Long: `Print the objects of which an extension would consist that is installed from the
bundle: sorted, the same for the same bundle and flags, and without status.

The controller adds labels, annotations and owner references by which it knows
objects as those of the extension. They are not printed: what is, can be reviewed,
compared and applied as it is. Hooks of a Helm chart come last, with their annotations:
they run before or after operations, and are no part of what is installed.

YAML is one document for each object; JSON is one List.

What is no folder here, and no packaged chart, is the reference of an image, which is
pulled. Registries, mirrors and credentials are those of the system.`,
		Example: `  kubectl extension bundle render ./bundle --namespace my-operator
  kubectl extension bundle render registry.example/my-operator:v1.0.0 -n my-operator --config inline.yaml -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	flags := command.Flags()
	flags.StringVarP(&o.namespace, flagNamespace, "n", "", "Namespace to install to, as in spec.namespace. Required.")
	flags.StringVar(&o.name, flagName, "", "Name of the ClusterExtension. It is checked; of what is printed, only the objects of a chart depend on it.")
	flags.StringVar(&o.config, flagConfig, "", "File with the configuration, YAML or JSON, as in spec.config.inline; - for standard input.")
	cli.NoFiles(command, flagNamespace, flagName)
	o.certificates.Bind(command, "", "Who issues the certificates of webhooks. In a cluster it is what is there. With none, bundles with webhooks cannot be rendered.")
	o.output.Bind(command, "o", "Format of the objects.")
	o.images.Bind(flags)
	return command
}

func (o *render) run(command *cobra.Command, from string) error {
	if err := o.check(); err != nil {
		return program.Misuse(command, err)
	}
	rendering, err := o.read(command)
	if err != nil {
		return err
	}
	rendered, err := o.images.Bundles().Render(command.Context(), from, rendering)
	if err != nil {
		return renderError(err, from, rendering.Config)
	}
	switch rendered.Lookups {
	case bundle.LookupsUnanswered:
		fmt.Fprintln(command.ErrOrStderr(), lookedNowhere)
	case bundle.LookupsRefused:
		fmt.Fprintln(command.ErrOrStderr(), bundle.LookupsRefusedText)
	case bundle.NoLookups, bundle.LookupsMade:
	}
	for _, warning := range rendered.Warnings() {
		fmt.Fprintln(command.ErrOrStderr(), cli.Printable("warning: "+warning))
	}
	return cli.PrintObjects(command.OutOrStdout(), o.output, rendered.All(), content, document)
}

// lookedNowhere is for a chart whose templates may look at a cluster.
const lookedNowhere = "lookup has found nothing, as no cluster is asked: on one, the chart may come to something else"

func content(object *unstructured.Unstructured) any { return object.Object }

func document(object *unstructured.Unstructured) (string, error) {
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("printing %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return string(text), nil
}
