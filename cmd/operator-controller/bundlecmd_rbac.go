package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
// bundle render prints for the same flags, or those of an extension.
type bundleRBAC struct {
	render         bundleRender
	serviceAccount string
	before         string
	beforeConfig   string
	replaceable    []string

	file   string
	access clusterAccess
}

const bundleRBACHelp = `Print a ServiceAccount and the least rights with which an extension can be installed
from a bundle, kept and removed: a ClusterRole, a Role in each namespace that has
objects, and their bindings. They are for kubectl apply; the namespaces have to be
there.

With clusterextension/NAME, or with -f and a file that has a ClusterExtension, the
cluster is asked, with your own rights: which bundle the controller would choose, and
who issues certificates; the rest is in the spec. The rights also do for the upgrade
from what is installed now, which takes the right to read Secrets in the controller's
namespace. What you may not read is guessed, and said. A folder of such a name is
./clusterextension/NAME.

With the folder or the image of a bundle no cluster is asked. The resource of a kind is
exact for those of Kubernetes and those that the bundle defines, and the usual plural
for others. With --from, the rights also do for the upgrade from that bundle: what is
dropped has to be read and deleted, and custom resources listed whose definitions
become stricter or go.

Names of roles in a bundle change with their rules, so print the rights anew for each
version, and apply them before the upgrade.

What the operator may do is in the list, because nobody can grant what they do not
hold. Rules to list and to watch, and the one for finalizers, are marked: an extension
can be installed without them.

Images are pulled as the system does it: registries, mirrors and credentials are its.

Exit codes: 0 printed, 1 the bundle cannot be installed so, or could not be had,
2 wrong usage.`

func newBundleRBACCommand() *cobra.Command {
	o := bundleRBAC{render: bundleRender{certificates: string(bundle.CertManager), output: outputYAML}}
	command := &cobra.Command{
		Use:   "rbac clusterextension/NAME | -f FILE | DIR|IMAGE --namespace NAMESPACE --service-account NAME",
		Short: "Print the ServiceAccount and the least rights to install a bundle with",
		Long:  bundleRBACHelp,
		Example: `  operator-controller bundle rbac clusterextension/my-operator | kubectl apply -f -
  operator-controller bundle rbac -f my-operator.yaml
  operator-controller bundle rbac ./bundle --namespace my-operator --service-account installer
  operator-controller bundle rbac ./v1.1.0 --from ./v1.0.0 -n my-operator --service-account installer`,
	}
	command.Args = o.checkArgs
	command.RunE = o.run
	flags := command.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "File with a ClusterExtension, which need not be on the cluster; - for standard input.")
	flags.StringVarP(&o.render.namespace, flagNamespace, "n", "", "Namespace to install to, as in spec.namespace. Required for a folder or an image.")
	flags.StringVar(&o.serviceAccount, flagServiceAccount, "", "Name of the ServiceAccount, as in spec.serviceAccount.name. Required for a folder or an image.")
	flags.StringVar(&o.before, "from", "", "Folder or image of the bundle to upgrade from.")
	flags.StringVar(&o.beforeConfig, "from-config", "", "File with the configuration that bundle is installed with; by default that of the other.")
	flags.StringSliceVar(&o.replaceable, flagReplace, nil,
		"Kinds to delete and create again, as in spec.install.replaceImmutable. It matters with --from.")
	flags.StringVar(&o.render.name, flagName, "", "Name of the ClusterExtension, to grant the rights to its finalizers.")
	flags.StringVar(&o.render.config, flagConfig, "", "File with the configuration, YAML or JSON, as in spec.config.inline.")
	flags.StringVar(&o.render.certificates, flagCertificates, o.render.certificates,
		"Who issues the certificates of webhooks: "+strings.Join(providers(), ", ")+". In a cluster it is what is there.")
	o.render.content.bind(flags)
	o.access.bind(flags)
	return command
}

// Flags that say what the spec of an extension says.
const (
	flagNamespace      = "namespace"
	flagServiceAccount = "service-account"
	flagName           = "name"
	flagConfig         = "config"
	flagReplace        = "replace-immutable"
)

// checkArgs takes an extension, or a bundle, or a file with an extension.
func (o *bundleRBAC) checkArgs(command *cobra.Command, args []string) error {
	switch {
	case o.file != "" && len(args) > 0:
		return errors.New("--filename stands in the place of a bundle and of an extension: leave one of them out")
	case o.file != "":
		return nil
	case len(args) == 0:
		return errors.New("the bundle or the extension is missing: give clusterextension/NAME, --filename, or the folder or image of a bundle")
	case namesExtension(args):
		_, err := extensionName(args)
		return err
	}
	return cobra.ExactArgs(1)(command, args)
}

// namesExtension is false of folders and images.
func namesExtension(args []string) bool {
	kind, _, slash := strings.Cut(args[0], "/")
	return isExtensionKind(kind) && (slash || len(args) > 1)
}

func (o *bundleRBAC) run(command *cobra.Command, args []string) error {
	provider, err := o.render.provider()
	if err != nil {
		return misuse(command, err)
	}
	if o.before == "" && o.beforeConfig != "" {
		return misuse(command, errors.New("--from-config is the configuration of --from, which is missing"))
	}
	if o.file != "" || namesExtension(args) {
		return o.runForExtension(command, args)
	}
	if err := o.check(); err != nil {
		return misuse(command, err)
	}
	config, err := readConfig(o.render.config)
	if err != nil {
		return err
	}
	rendering := rendering{
		content: o.render.content, namespace: o.render.namespace,
		certificates: taken(provider, command.Flags(), command.ErrOrStderr()),
	}
	content := permission.Content{Replaceable: preflight.Replaceable(o.replaceable)}
	if content.Wanted, err = rendering.render(command.Context(), args[0], config); err != nil {
		return err
	}
	if content.Before, err = o.rendersBefore(command.Context(), rendering, config); err != nil {
		return err
	}
	subject := permission.Subject{Extension: o.render.name, Namespace: o.render.namespace, ServiceAccount: o.serviceAccount}
	if slices.ContainsFunc(content.Wanted, isInstaller(subject)) {
		return misuse(command, fmt.Errorf("the bundle has a ServiceAccount %q of its own: choose another name", o.serviceAccount))
	}
	return printRights(command.OutOrStdout(), permission.Guessed, subject, content)
}

// rendersBefore gives the objects of the bundle to upgrade from, if a flag names one.
func (o *bundleRBAC) rendersBefore(ctx context.Context, rendering rendering, config []byte) ([]*unstructured.Unstructured, error) {
	if o.before == "" {
		return nil, nil
	}
	own, err := readConfig(o.beforeConfig)
	if err != nil {
		return nil, err
	}
	if own == nil {
		own = config
	}
	return rendering.render(ctx, o.before, own)
}

// printRights prints what the subject needs for the content.
func printRights(to io.Writer, mapper permission.Mapper, subject permission.Subject, content permission.Content) error {
	needs, err := permission.NeedsOf(mapper, subject, content)
	if err != nil {
		return err
	}
	stored, err := preflight.Stored(content.Before, content.Wanted)
	if err != nil {
		return err
	}
	needs.Stored = permission.ToList(stored)
	return printReasoned(to, permission.Grants(needs, subject))
}

// isInstaller is true of an object that would be in the way of the ServiceAccount.
func isInstaller(subject permission.Subject) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		return object.GetAPIVersion() == "v1" && object.GetKind() == "ServiceAccount" &&
			cmp.Or(object.GetNamespace(), subject.Namespace) == subject.Namespace && object.GetName() == subject.ServiceAccount
	}
}

// check judges the flags for a bundle without an extension.
func (o *bundleRBAC) check() error {
	if _, err := o.render.check(); err != nil {
		return err
	}
	if kinds := preflight.Replaceable(o.replaceable); len(kinds) < len(o.replaceable) {
		return fmt.Errorf("--replace-immutable is %s: not all of these may be replaced", strings.Join(o.replaceable, ","))
	}
	if o.serviceAccount == "" {
		return errors.New("--service-account is required: it is who would install the bundle")
	}
	if problems := validation.IsDNS1123Subdomain(o.serviceAccount); len(problems) > 0 {
		return fmt.Errorf("no ServiceAccount can have the name %q: %s", o.serviceAccount, problems[0])
	}
	return nil
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
