package crd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/crdcheck"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// maxDefinitions lets a file have all definitions of a large cluster, in bytes.
const maxDefinitions = 256 << 20

// check is the command line of crd check.
type check struct {
	withCluster bool
	namespace   string
	output      *cli.Choice
	images      cli.Images
	cluster     cli.Cluster
}

func newCheckCommand() *cobra.Command {
	o := check{output: cli.NewOutput(cli.Text, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "check OLD NEW",
		Short: "List what an upgrade of CustomResourceDefinitions can break",
		Long: `List what an upgrade of CustomResourceDefinitions can break, what blocks first, and
then for each check what to do. It is what the controller finds before an upgrade.

OLD and NEW are a bundle, which is a folder or an image, or a file with definitions in
YAML or JSON, such as kubectl prints; - is standard input. Definitions of the same name
are compared; those that only OLD has are deleted by an upgrade, those that only NEW has
break nothing.

  blocks      the API server would refuse it, or it cannot be undone
  needs data  it breaks the stored objects that do not fit, and nothing if all do
  note        it stops nothing

With --cluster in the place of OLD, the definitions of NEW are compared with those of
the cluster, and the stored objects are read where the answer depends on them. Nothing
needs data then: what no object breaks is a note, and what some break blocks. It takes
the rights to get definitions and to list their objects. Definitions that NEW no longer
has are not looked at.

What blocks and what needs data are errors.`,
		Example: `  kubectl extension crd check ./v1.0.0 ./v1.1.0
  kubectl extension crd check registry.example/my-operator:v1.0.0 registry.example/my-operator:v1.1.0 -o json
  kubectl extension crd check --cluster ./v1.1.0 --namespace my-operator`,
	}
	command.Args = func(command *cobra.Command, args []string) error {
		if o.withCluster {
			return cobra.ExactArgs(1)(command, args)
		}
		return cobra.ExactArgs(2)(command, args)
	}
	command.RunE = o.run
	flags := command.Flags()
	flags.BoolVar(&o.withCluster, "cluster", false, "Compare with the definitions and objects of a cluster, with your own rights.")
	flags.StringVarP(&o.namespace, "namespace", "n", "default",
		"Namespace to install bundles to, as in spec.namespace. It matters to webhooks that convert objects, and to nothing else.")
	cli.NoFiles(command, "namespace")
	o.output.Bind(command, "o", "Format of the list.")
	o.cluster.Bind(command)
	o.images.Bind(flags)
	return command
}

func (o *check) run(command *cobra.Command, args []string) error {
	if !o.withCluster {
		if err := o.cluster.CheckUnused(command); err != nil {
			return program.Misuse(command, fmt.Errorf("%w, or give --cluster", err))
		}
	}
	newer, err := o.read(command, args[len(args)-1])
	if err != nil {
		return err
	}
	found, err := o.compare(command, args, newer)
	if err != nil {
		return err
	}
	if err := o.print(command.OutOrStdout(), found); err != nil {
		return err
	}
	return verdict(command.ErrOrStderr(), found.Findings)
}

func (o *check) compare(command *cobra.Command, args []string, newer crdcheck.Definitions) (preflight.Verdict, error) {
	if !o.withCluster {
		older, err := o.read(command, args[0])
		return crdcheck.Compare(older, newer), err
	}
	config, err := o.cluster.Config()
	if err != nil {
		return preflight.Verdict{}, err
	}
	return crdcheck.CompareWithCluster(command.Context(), config, newer)
}

// read returns the definitions of a file, a bundle folder or the image of a bundle.
func (o *check) read(command *cobra.Command, from string) (found crdcheck.Definitions, err error) {
	if info, err := os.Stat(from); from == catalogsource.Stdin || err == nil && info.Mode().IsRegular() {
		return readFile(command, from)
	}
	bundles := o.images.Bundles()
	err = bundles.Files(command.Context(), from, func(files fs.FS) (err error) {
		found, err = crdcheck.OfBundle(files, o.namespace, bundles.Charts(command.Context()))
		return err
	})
	if _, ok := errors.AsType[*bundle.InvalidError](err); ok {
		err = fmt.Errorf("%w\nTry 'kubectl extension bundle check %s'", err, from)
	}
	if _, ok := errors.AsType[*bundlesource.InvalidError](err); ok {
		err = fmt.Errorf("%q is no file with definitions, and no bundle: %w", from, err)
	}
	return found, cli.BundleError(err)
}

func readFile(command *cobra.Command, from string) (crdcheck.Definitions, error) {
	data, err := cli.ReadFile(command, from, maxDefinitions)
	if err != nil {
		return nil, err
	}
	found := crdcheck.Definitions{}
	err = cli.EachObject(data, found.Add)
	if err == nil && len(found) == 0 {
		err = errors.New("there is no CustomResourceDefinition in it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return found, nil
}
