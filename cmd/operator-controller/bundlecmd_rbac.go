package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// bundleRBAC is the command line of bundle rbac. The objects are those that
// bundle render prints for the same flags.
type bundleRBAC struct {
	render         bundleRender
	serviceAccount string
	before         string
	beforeConfig   string
	replaceable    []string
}

func newBundleRBACCommand() *cobra.Command {
	o := bundleRBAC{render: bundleRender{certificates: string(bundle.CertManager), output: outputYAML}}
	command := &cobra.Command{
		Use:   "rbac DIR|IMAGE --namespace NAMESPACE --service-account NAME",
		Short: "Print the ServiceAccount and the least rights to install a bundle with",
		Long: `Print a ServiceAccount and the least rights with which an extension can be installed
from the bundle, kept and removed: a ClusterRole, a Role in each namespace that has
objects, and their bindings. They are for kubectl apply; the namespaces have to be
there.

With --from, the rights also do for the upgrade from that bundle: what is dropped has
to be read and deleted, and custom resources listed whose definitions become stricter
or go. Names of roles in a bundle change with their rules, so print
the rights anew for each version, and apply them before the upgrade.

What the operator may do is in the list, because nobody can grant what they do not
hold. Rules to list and to watch, and the one for finalizers, are marked: an extension
can be installed without them.

No cluster is asked. The resource of a kind is exact for those of Kubernetes and those
that the bundle defines, and the usual plural for others.

What is no folder here is the reference of an image, which is pulled. Registries,
mirrors and credentials are those of the system.

Exit codes: 0 printed, 1 the bundle cannot be installed so, or could not be had,
2 wrong usage.`,
		Example: `  operator-controller bundle rbac ./bundle --namespace my-operator --service-account installer
  operator-controller bundle rbac ./v1.1.0 --from ./v1.0.0 -n my-operator --service-account installer | kubectl apply -f -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	flags := command.Flags()
	flags.StringVarP(&o.render.namespace, "namespace", "n", "", "Namespace to install to, as in spec.namespace. Required.")
	flags.StringVar(&o.serviceAccount, "service-account", "", "Name of the ServiceAccount, as in spec.serviceAccount.name. Required.")
	flags.StringVar(&o.before, "from", "", "Folder or image of the bundle to upgrade from.")
	flags.StringVar(&o.beforeConfig, "from-config", "", "File with the configuration that bundle is installed with; by default that of --config.")
	flags.StringSliceVar(&o.replaceable, "replace-immutable", nil,
		"Kinds to delete and create again, as in spec.install.replaceImmutable. It matters with --from.")
	flags.StringVar(&o.render.name, "name", "", "Name of the ClusterExtension, to grant the rights to its finalizers.")
	flags.StringVar(&o.render.config, "config", "", "File with the configuration, YAML or JSON, as in spec.config.inline.")
	flags.StringVar(&o.render.certificates, "certificates", o.render.certificates,
		"Who issues the certificates of webhooks: "+strings.Join(providers(), ", ")+". In a cluster it is what is there.")
	o.render.content.bind(flags)
	return command
}

func (o bundleRBAC) run(command *cobra.Command, from string) error {
	options, err := o.check()
	if err != nil {
		return misuse(command, err)
	}
	rendered := func(from, configFile string) (objects []*unstructured.Unstructured, err error) {
		var config []byte
		if configFile != "" {
			if config, err = os.ReadFile(configFile); err != nil {
				return nil, &usageError{err: err}
			}
		}
		err = o.render.content.readBundle(command.Context(), from, func(files fs.FS) (err error) {
			objects, err = renderBundle(files, config, options)
			return err
		})
		if _, ok := errors.AsType[*bundle.InvalidError](err); ok {
			err = fmt.Errorf("%w\nTry 'operator-controller bundle check %s'", err, from)
		}
		return objects, err
	}
	content := permission.Content{Replaceable: preflight.Replaceable(o.replaceable)}
	if content.Wanted, err = rendered(from, o.render.config); err != nil {
		return err
	}
	if slices.ContainsFunc(content.Wanted, o.isInstaller) {
		return misuse(command, fmt.Errorf("the bundle has a ServiceAccount %q of its own: choose another name", o.serviceAccount))
	}
	if o.before != "" {
		if content.Before, err = rendered(o.before, cmp.Or(o.beforeConfig, o.render.config)); err != nil {
			return err
		}
	}
	subject := permission.Subject{Extension: o.render.name, Namespace: o.render.namespace, ServiceAccount: o.serviceAccount}
	needs, err := permission.NeedsOf(permission.Guessed, subject, content)
	if err != nil {
		return err
	}
	stored, err := preflight.Stored(content.Before, content.Wanted)
	if err != nil {
		return err
	}
	needs.Stored = permission.ToList(stored)
	return printReasoned(command.OutOrStdout(), permission.Grants(needs, subject))
}

// isInstaller is true of an object that would be in the way of the ServiceAccount.
func (o bundleRBAC) isInstaller(object *unstructured.Unstructured) bool {
	return object.GetAPIVersion() == "v1" && object.GetKind() == "ServiceAccount" &&
		object.GetNamespace() == o.render.namespace && object.GetName() == o.serviceAccount
}

// check judges the flags.
func (o bundleRBAC) check() (bundle.Options, error) {
	provider, err := o.render.check()
	if err != nil {
		return bundle.Options{}, err
	}
	if kinds := preflight.Replaceable(o.replaceable); len(kinds) < len(o.replaceable) {
		return bundle.Options{}, fmt.Errorf("--replace-immutable is %s: not all of these may be replaced", strings.Join(o.replaceable, ","))
	}
	if o.serviceAccount == "" {
		return bundle.Options{}, errors.New("--service-account is required: it is who would install the bundle")
	}
	if problems := validation.IsDNS1123Subdomain(o.serviceAccount); len(problems) > 0 {
		return bundle.Options{}, fmt.Errorf("no ServiceAccount can have the name %q: %s", o.serviceAccount, problems[0])
	}
	return bundle.Options{InstallNamespace: o.render.namespace, Certificates: provider}, nil
}

// printReasoned prints YAML documents, with the reasons of rules as comments.
func printReasoned(to io.Writer, documents []permission.Document) error {
	for _, document := range documents {
		text, err := yaml.Marshal(document.Object)
		if err != nil {
			return err
		}
		node, err := kyaml.Parse(string(text))
		if err != nil {
			return err
		}
		if err := comment(node, document.Reasons); err != nil {
			return err
		}
		commented, err := node.String()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "---\n%s", commented); err != nil {
			return err
		}
	}
	return nil
}

func comment(node *kyaml.RNode, reasons map[int]string) error {
	if len(reasons) == 0 {
		return nil
	}
	rules, err := node.Pipe(kyaml.Lookup("rules"))
	if err != nil {
		return err
	}
	content := rules.YNode().Content
	for index := range maps.Keys(reasons) {
		content[index].HeadComment = "# " + reasons[index]
	}
	return nil
}
