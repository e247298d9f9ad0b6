package main

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

// crdCheck is the command line of crd check.
type crdCheck struct {
	cluster bool
	output  string
	content definitionContent
	access  clusterAccess
}

func newCRDCheckCommand() *cobra.Command {
	o := crdCheck{output: outputText}
	command := &cobra.Command{
		Use:   "check OLD NEW",
		Short: "List what an upgrade of CustomResourceDefinitions can break",
		Long: `List what an upgrade of CustomResourceDefinitions can break, what blocks first, and
then for each check what to do. It is what the controller finds before an upgrade.

OLD and NEW are a bundle, which is a folder or an image, or a file with definitions in
YAML or JSON, such as kubectl prints. Definitions of the same name are compared; those
that only OLD has are deleted by an upgrade, those that only NEW has break nothing.

  blocks      the API server would refuse it, or it cannot be undone
  needs data  it breaks the stored objects that do not fit, and nothing if all do
  note        it stops nothing

With --cluster in the place of OLD, the definitions of NEW are compared with those of
the cluster, and the stored objects are read where the answer depends on them. Nothing
needs data then: what no object breaks is a note, and what some break blocks. It takes
the rights to get definitions and to list their objects. Definitions that NEW no longer
has are not looked at.

Exit codes: 0 only notes, 1 something blocks or needs data, or definitions or objects
cannot be read, 2 wrong usage.`,
		Example: `  operator-controller crd check ./v1.0.0 ./v1.1.0
  operator-controller crd check registry.example/my-operator:v1.0.0 registry.example/my-operator:v1.1.0 -o json
  operator-controller crd check --cluster ./v1.1.0 --namespace my-operator`,
	}
	command.Args = func(command *cobra.Command, args []string) error {
		if o.cluster {
			return cobra.ExactArgs(1)(command, args)
		}
		return cobra.ExactArgs(2)(command, args)
	}
	command.RunE = o.run
	flags := command.Flags()
	flags.BoolVar(&o.cluster, "cluster", false, "Compare with the definitions and objects of a cluster, with your own rights.")
	flags.StringVar(&o.access.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file; by default as kubectl finds it.")
	flags.StringVar(&o.access.context, "context", "", "Name of the kubeconfig context; by default the current one.")
	flags.StringVarP(&o.output, "output", "o", o.output, problemsFlag)
	o.content.bind(flags)
	return command
}

func (o *crdCheck) run(command *cobra.Command, args []string) error {
	if err := checkProblemsOutput(o.output); err != nil {
		return misuse(command, err)
	}
	newer, err := o.content.read(command.Context(), args[len(args)-1])
	if err != nil {
		return err
	}
	compare := o.compareWithCluster
	if !o.cluster {
		compare = func(ctx context.Context, newer definitionsByName) (preflight.Verdict, error) {
			return o.compareWith(ctx, args[0], newer)
		}
	}
	found, err := compare(command.Context(), newer)
	if err != nil {
		return err
	}
	if err := printUpgrade(command.OutOrStdout(), o.output, found); err != nil {
		return err
	}
	return upgradeVerdict(command.ErrOrStderr(), found.Findings)
}

// compareWith compares without a cluster: what depends on stored objects still
// does.
func (o *crdCheck) compareWith(ctx context.Context, from string, newer definitionsByName) (preflight.Verdict, error) {
	older, err := o.content.read(ctx, from)
	if err != nil {
		return preflight.Verdict{}, err
	}
	var found []crdupgrade.Finding
	for name, old := range older {
		if successor, ok := newer[name]; ok {
			found = append(found, crdupgrade.Compare(old, successor)...)
		} else {
			found = append(found, crdupgrade.Dropped(old))
		}
	}
	return preflight.Verdict{Findings: crdupgrade.Sort(found)}, nil
}

// compareWithCluster does what the controller does, with the rights of whoever
// calls the command.
func (o *crdCheck) compareWithCluster(ctx context.Context, newer definitionsByName) (preflight.Verdict, error) {
	cluster, list, err := o.clients()
	if err != nil {
		return preflight.Verdict{}, err
	}
	var changes []preflight.Change
	for _, name := range slices.Sorted(maps.Keys(newer)) {
		live, err := liveDefinition(ctx, cluster, name)
		if err != nil {
			return preflight.Verdict{}, err
		}
		if live == nil {
			continue
		}
		wanted, err := objectOf(newer[name])
		if err != nil {
			return preflight.Verdict{}, err
		}
		changes = append(changes, preflight.Change{Live: live, Wanted: &unstructured.Unstructured{Object: wanted}})
	}
	return preflight.Definitions(ctx, list, crdupgrade.Policy{}, changes)
}
