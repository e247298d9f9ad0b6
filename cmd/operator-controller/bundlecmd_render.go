package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// outputYAML prints YAML documents.
const outputYAML = "yaml"

// noCertificates is the value of the flag for [bundle.NoCertificates].
const noCertificates = "none"

// bundleRender is the command line of bundle render.
type bundleRender struct {
	namespace    string
	name         string
	config       string
	certificates string
	output       string
	content      contentFlags
}

func newBundleRenderCommand() *cobra.Command {
	o := bundleRender{certificates: string(bundle.CertManager), output: outputYAML}
	command := &cobra.Command{
		Use:   "render DIR|IMAGE --namespace NAMESPACE",
		Short: "Print the objects of which an extension would consist",
		Long: `Print the objects of which an extension would consist that is installed from the
bundle: sorted, the same for the same bundle and flags, and without status.

The controller adds labels, annotations and owner references by which it knows
objects as those of the extension. They are not printed: what is, can be reviewed,
compared and applied as it is.

YAML is one document for each object; JSON is one List.

What is no folder here is the reference of an image, which is pulled. Registries,
mirrors and credentials are those of the system.

Exit codes: 0 printed, 1 the bundle cannot be installed so, or could not be had,
2 wrong usage.`,
		Example: `  operator-controller bundle render ./bundle --namespace my-operator
  operator-controller bundle render registry.example/my-operator:v1.0.0 -n my-operator --config inline.yaml -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	flags := command.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "Namespace to install to, as in spec.namespace. Required.")
	flags.StringVar(&o.name, "name", "", "Name of the ClusterExtension. It is checked; nothing that is printed depends on it.")
	flags.StringVar(&o.config, "config", "", "File with the configuration, YAML or JSON, as in spec.config.inline.")
	flags.StringVar(&o.certificates, flagCertificates, o.certificates,
		"Who issues the certificates of webhooks: "+strings.Join(providers(), ", ")+
			". In a cluster it is what is there. With none, bundles with webhooks cannot be rendered.")
	flags.StringVarP(&o.output, "output", "o", o.output, "Format of the objects: yaml or json.")
	o.content.bind(flags)
	return command
}

func (o bundleRender) run(command *cobra.Command, from string) error {
	provider, err := o.check()
	if err != nil {
		return misuse(command, err)
	}
	config, err := readConfig(o.config)
	if err != nil {
		return err
	}
	rendering := rendering{content: o.content, namespace: o.namespace, certificates: taken(provider, command.Flags(), command.ErrOrStderr())}
	objects, err := rendering.render(command.Context(), from, config)
	if err != nil {
		return err
	}
	if o.output == outputJSON {
		return printList(command.OutOrStdout(), objects)
	}
	return printDocuments(command.OutOrStdout(), objects)
}

// check judges the flags.
func (o bundleRender) check() (bundle.CertificateProvider, error) {
	if o.namespace == "" {
		return "", errors.New("--namespace is required: it is where the bundle would be installed")
	}
	if problems := validation.IsDNS1123Label(o.namespace); len(problems) > 0 {
		return "", fmt.Errorf("no namespace can have the name %q: %s", o.namespace, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(o.name); o.name != "" && len(problems) > 0 {
		return "", fmt.Errorf("no ClusterExtension can have the name %q: %s", o.name, problems[0])
	}
	if o.output != outputYAML && o.output != outputJSON {
		return "", fmt.Errorf("unknown output %q: it is %s or %s", o.output, outputYAML, outputJSON)
	}
	return o.provider()
}

// provider is what the flag for certificates names.
func (o bundleRender) provider() (bundle.CertificateProvider, error) {
	switch {
	case o.certificates == noCertificates:
		return bundle.NoCertificates, nil
	case slices.Contains(providers(), o.certificates):
		return bundle.CertificateProvider(o.certificates), nil
	}
	return "", fmt.Errorf("unknown certificates %q: they are one of %s", o.certificates, strings.Join(providers(), ", "))
}

// providers are the values of the flag for certificates.
func providers() []string {
	return []string{string(bundle.CertManager), string(bundle.ServiceCA), string(bundle.SelfManaged), noCertificates}
}

// printDocuments prints objects as YAML documents.
func printDocuments(to io.Writer, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("printing %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		if _, err := fmt.Fprintf(to, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// printList prints objects as a List, which is what kubectl prints and takes.
func printList(to io.Writer, objects []*unstructured.Unstructured) error {
	items := make([]any, len(objects))
	for i, object := range objects {
		items[i] = object.Object
	}
	return printJSON(to, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
