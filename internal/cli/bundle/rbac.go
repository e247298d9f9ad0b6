package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// rbac is the command line of bundle rbac. The objects are those that bundle render
// prints for the same flags, or those of an extension.
type rbac struct {
	rendering

	output         *cli.Choice
	serviceAccount string
	before         string
	beforeConfig   string
	replaceable    []string

	file    string
	version string
	cluster cli.Cluster
}

const rbacHelp = `Print a ServiceAccount and the least rights with which an extension can be installed
from a bundle, kept and removed: a ClusterRole, a Role in each namespace that has
objects, and their bindings. They are for kubectl apply; the namespaces have to be
there.

With clusterextension/NAME, or with -f and a file that has a ClusterExtension, the
cluster is asked, with your own rights: which bundle the controller would choose, and
who issues certificates; the rest is in the spec. With --version it is that one: for a
plan or a rollback that lacks rights. Where an upgrade waits, the rights do for what is
installed until then, too. The rights also do for the upgrade
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
hold. Rules to list and to watch, and the one for finalizers, are marked in YAML: an
extension can be installed without them.

Images are pulled as the system does it: registries, mirrors and credentials are its.`

func newRBACCommand() *cobra.Command {
	o := rbac{rendering: rendering{certificates: newCertificates()}, output: cli.NewOutput(cli.YAML, cli.JSON)}
	command := &cobra.Command{
		Use:   "rbac clusterextension/NAME | -f FILE | DIR|IMAGE --namespace NAMESPACE --service-account NAME",
		Short: "Print the ServiceAccount and the least rights to install a bundle with",
		Long:  rbacHelp,
		Example: `  kubectl extension bundle rbac clusterextension/my-operator | kubectl apply -f -
  kubectl extension bundle rbac clusterextension/my-operator --version 1.0.0
  kubectl extension bundle rbac -f my-operator.yaml
  kubectl extension bundle rbac ./bundle --namespace my-operator --service-account installer
  kubectl extension bundle rbac ./v1.1.0 --from ./v1.0.0 -n my-operator --service-account installer`,
	}
	command.Args = o.checkArgs
	command.RunE = o.run
	command.ValidArgsFunction = o.cluster.CompleteNames("clusterextension/", cobra.ShellCompDirectiveDefault)
	flags := command.Flags()
	flags.StringVarP(&o.file, cli.FlagFilename, "f", "", "File with a ClusterExtension, which need not be on the cluster; - for standard input.")
	flags.StringVar(&o.version, flagVersion, "", "Version of an extension to go to, whether or not an upgrade leads there; by default the one that would be chosen.")
	flags.StringVarP(&o.namespace, flagNamespace, "n", "", "Namespace to install to, as in spec.namespace. Required for a folder or an image.")
	flags.StringVar(&o.serviceAccount, flagServiceAccount, "", "Name of the ServiceAccount, as in spec.serviceAccount.name. Required for a folder or an image.")
	flags.StringVar(&o.before, "from", "", "Folder or image of the bundle to upgrade from.")
	flags.StringVar(&o.beforeConfig, "from-config", "", "File with the configuration that bundle is installed with; by default that of the other.")
	flags.StringSliceVar(&o.replaceable, flagReplace, nil,
		"Kinds to delete and create again, as in spec.install.replaceImmutable. It matters with --from.")
	flags.StringVar(&o.name, flagName, "", "Name of the ClusterExtension, to grant the rights to its finalizers.")
	flags.StringVar(&o.config, flagConfig, "", "File with the configuration, YAML or JSON, as in spec.config.inline; - for standard input.")
	cli.NoFiles(command, flagNamespace, flagServiceAccount, flagName, flagVersion)
	o.certificates.Bind(command, "", "Who issues the certificates of webhooks. In a cluster it is what is there.")
	o.output.Bind(command, "o", "Format of the objects.")
	o.images.Bind(flags)
	o.cluster.BindInspect(command)
	return command
}

// Flags that say what the spec of an extension says.
const (
	flagNamespace      = "namespace"
	flagServiceAccount = "service-account"
	flagName           = "name"
	flagConfig         = "config"
	flagReplace        = "replace-immutable"

	// flagVersion is another version than that of the spec.
	flagVersion = "version"
)

// checkArgs takes an extension, or a bundle, or a file with an extension.
func (o *rbac) checkArgs(command *cobra.Command, args []string) error {
	switch {
	case o.file != "" && len(args) > 0:
		return errors.New("--filename stands in the place of a bundle and of an extension: leave one of them out")
	case o.file != "":
		return nil
	case len(args) == 0:
		return errors.New("the bundle or the extension is missing: give clusterextension/NAME, --filename, or the folder or image of a bundle")
	case namesExtension(args):
		_, err := cli.ExtensionName(args)
		return err
	}
	return cobra.ExactArgs(1)(command, args)
}

// namesExtension is false of folders and images.
func namesExtension(args []string) bool {
	kind, _, slash := strings.Cut(args[0], "/")
	return cli.IsExtensionKind(kind) && (slash || len(args) > 1)
}

func (o *rbac) run(command *cobra.Command, args []string) error {
	if o.before == "" && o.beforeConfig != "" {
		return program.Misuse(command, errors.New("--from-config is the configuration of --from, which is missing"))
	}
	if readTwice(o.file, o.config, o.beforeConfig) {
		return program.Misuse(command, errors.New("standard input can be read only once"))
	}
	if o.file != "" || namesExtension(args) {
		return o.runForExtension(command, args)
	}
	if o.version != "" {
		return program.Misuse(command, errors.New("a folder or an image is of one version: --version is for clusterextension/NAME and for a file"))
	}
	if err := cmp.Or(o.cluster.CheckUnused(command), o.check()); err != nil {
		return program.Misuse(command, err)
	}
	rendering, err := o.read(command)
	if err != nil {
		return err
	}
	rendered, err := o.images.Bundles().Render(command.Context(), args[0], rendering)
	if err != nil {
		return renderError(hint(err, args[0]), args[0], rendering.Config)
	}
	if rendered.Lookups == bundle.LookupsUnanswered {
		fmt.Fprintln(command.ErrOrStderr(), lookedNowhere)
		fmt.Fprintln(command.ErrOrStderr(), cli.UnknownForLookup)
	}
	content := permission.Content{
		Wanted: rendered.Objects, Hooks: hook.WithoutTests(rendered.Hooks), Replaceable: preflight.Replaceable(o.replaceable),
	}
	if o.before != "" {
		if content.Before, err = o.renderBefore(command)(command.Context(), rendering); err != nil {
			return err
		}
	}
	subject := permission.Subject{Extension: o.name, Namespace: o.namespace, ServiceAccount: o.serviceAccount}
	grants, err := preflight.Grants(permission.Guessed, subject, content)
	if taken, ok := errors.AsType[*preflight.OwnServiceAccountError](err); ok {
		return program.Misuse(command, fmt.Errorf("%w: choose another name", taken))
	}
	if err != nil {
		return err
	}
	return cli.PrintDocuments(command.OutOrStdout(), o.output, grants)
}

// readTwice is true if more than one of the files is standard input.
func readTwice(files ...string) bool {
	first := slices.Index(files, catalogsource.Stdin)
	return first >= 0 && slices.Contains(files[first+1:], catalogsource.Stdin)
}

// hint says how an extension is named where what should be a bundle may be one.
func hint(err error, from string) error {
	if _, ok := errors.AsType[*bundlesource.InvalidError](err); ok && len(validation.IsDNS1123Subdomain(from)) == 0 {
		return fmt.Errorf("%w; for a ClusterExtension give clusterextension/%s", err, from)
	}
	return err
}

// renderBefore gives the objects of the bundle to upgrade from, which is rendered as the
// other one but for its configuration.
func (o *rbac) renderBefore(command *cobra.Command) func(context.Context, bundlesource.Rendering) ([]*unstructured.Unstructured, error) {
	return func(ctx context.Context, rendering bundlesource.Rendering) ([]*unstructured.Unstructured, error) {
		own, err := cli.ReadConfig(command, o.beforeConfig) //nolint:contextcheck // the command has the same
		if err != nil {
			return nil, err
		}
		if own != nil {
			rendering.Config = own
		}
		rendered, err := o.images.Bundles().Render(ctx, o.before, rendering)
		return rendered.Objects, renderError(err, o.before, rendering.Config)
	}
}

// check judges the flags for a bundle without an extension.
func (o *rbac) check() error {
	if err := o.rendering.check(); err != nil {
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
