package install

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlepush"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

const helpTry = `Push a folder with a bundle or a Helm chart, or a packaged chart, to a registry, and install
it from there on the cluster of the kubeconfig: with a namespace, a ServiceAccount with the
least rights that it takes, and a ClusterExtension that names the image.

The whole manifest is printed first, with all rights, and applied when you agree. What
becomes of it is told until the extension is ready, or a person has to act. Do it again after
a change, and the extension goes to the new image; the same files are the same image, and change
nothing.

The registry has to be one that the cluster reaches by the same name. It is written to with
the credentials that you have for it on this machine, those of docker login or podman login.`

// try is the command line of bundle try.
type try struct {
	wish    wish
	config  string
	target  bundlepush.Target
	yes     bool
	timeout time.Duration
	images  cli.Images
	cluster cli.Cluster
}

// NewTryCommand returns the command by which an author installs a bundle of a folder.
func NewTryCommand() *cobra.Command {
	o := try{}
	command := &cobra.Command{
		Use:   "try DIR|CHART --registry REPOSITORY",
		Short: "Push a bundle, and install it",
		Long:  helpTry,
		Example: `  kubectl extension bundle try ./bundle --registry registry.example/team/my-operator
  kubectl extension bundle try ./bundle --registry localhost:5000/my-operator --yes
  kubectl extension bundle try ./web-1.0.0.tgz --registry registry.example/team/web --config inline.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: o.run,
	}
	flags := command.Flags()
	flags.StringVar(&o.target.Repository, "registry", "", "Repository to push to: a registry and a path in it, without a tag. Required.")
	flags.BoolVar(&o.target.PlainHTTP, "plain-http", false, "The registry speaks no TLS. One on this machine need not, also without this.")
	flags.StringVarP(&o.wish.namespace, "namespace", "n", "", "Namespace to install to; by default one of the name of the package.")
	flags.StringVar(&o.config, "config", "", "File with the configuration, YAML or JSON, as in spec.config.inline; - for standard input.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "How long to wait; 0 for as long as it takes.")
	cli.NoFiles(command, "registry", "namespace")
	o.images.Bind(flags)
	o.cluster.BindInspect(command)
	return command
}

func (o *try) run(command *cobra.Command, args []string) error {
	switch {
	case o.target.Repository == "":
		return program.Misuse(command, errors.New("--registry is required: it is where the bundle is pushed to"))
	case o.timeout < 0:
		return program.Misuse(command, fmt.Errorf("--timeout %s: it cannot be negative", o.timeout))
	}
	if err := o.target.Check(); err != nil {
		return program.Misuse(command, fmt.Errorf("--registry takes a registry and a path, without a tag: %w", err))
	}
	files, err := bundlesource.Local(args[0])
	if err != nil {
		return program.Misuse(command, err)
	}
	ext, err := o.extension(command, files)
	if err != nil {
		return err
	}
	if ext.Spec.Source, err = o.push(command, files); err != nil {
		return err
	}
	return o.install(command, ext, files)
}

// extension is that of the bundle, which has no image yet.
func (o *try) extension(command *cobra.Command, files fs.FS) (*ocv1.ClusterExtension, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	identity, err := content.Identity()
	if err != nil {
		return nil, err
	}
	config, err := cli.ReadConfig(command, o.config)
	if err != nil {
		return nil, program.Misuse(command, err)
	}
	o.wish.pkg = identity.Package
	ext, err := o.wish.extension(config, false)
	if err != nil {
		return nil, program.Misuse(command, err)
	}
	return ext, nil
}

// push stores the bundle.
func (o *try) push(command *cobra.Command, files fs.FS) (ocv1.SourceConfig, error) {
	o.target.Realms = o.images.Realms()
	ref, err := o.target.Push(command.Context(), bundlepush.Content{Files: files})
	if err != nil {
		return ocv1.SourceConfig{}, err
	}
	fmt.Fprintln(command.ErrOrStderr(), "pushed "+ref)
	return ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: ref}}, nil
}

// install prints what is to be applied, and applies it if somebody agrees.
func (o *try) install(command *cobra.Command, ext *ocv1.ClusterExtension, files fs.FS) error {
	cluster, err := o.cluster.Inspect(command.Context())
	if err != nil {
		return err
	}
	bundles := o.images.Bundles()
	bundles.Known = map[string]fs.FS{ext.Spec.Source.Bundle.Ref: files}
	plan, err := planOf(command.Context(), cluster, ext, bundles)
	if err != nil {
		return err
	}
	documents, err := documentsOf(command.ErrOrStderr(), plan)
	if err != nil {
		return err
	}
	if err := cli.PrintDocuments(command.OutOrStdout(), cli.NewOutput(cli.YAML), documents); err != nil {
		return err
	}
	if !o.yes {
		fmt.Fprint(command.ErrOrStderr(), "Apply this? [y/N] ")
		if agreed, err := cli.Agrees(command.Context(), command.InOrStdin()); err != nil || !agreed {
			return errors.Join(errors.New("nothing was applied"), err)
		}
	}
	return applyAndWait(command, cluster, &o.cluster, documents, plan, o.timeout)
}
