package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/migration"
)

const checkHelp = `Say which operators of classic OLM can become extensions, what stands against it, and what
would be taken over, created, deleted and restarted. Nothing is written: what would be
created is tried in a dry run of the API server.

An operator is named by its Subscription, as NAME or NAMESPACE/NAME. With --all, or where
several are named, it is taken that they move in one go.

  Eligible         it can be moved
  Ineligible       something blocks, and is to be mended first
  AlreadyMigrated  there is an extension, and no Subscription any more
  Conflict         there are both, or a move has not ended

  blocks           it is not moved
  needs attention  a person has to know, and to agree
  note             worth knowing

The package has to be in a ClusterCatalog, with the version that is installed: see kubectl
extension migrate catalogs. Where an OperatorGroup names no ServiceAccount, the extension
gets one that is named after it, or that of --service-account.

Everything is asked with your own rights. It takes the right to list what classic OLM has
made, and to know what a ServiceAccount lacks the right to impersonate it. What may not be
read is said to be not known.

That an operator cannot be moved is an error.`

// check is the command line of migrate check.
type check struct {
	selection

	output  *cli.Choice
	images  cli.Images
	cluster cli.Cluster
}

func newCheckCommand() *cobra.Command {
	o := check{output: cli.NewOutput(cli.Text, cli.JSON)}
	command := &cobra.Command{
		Use:   "check [NAMESPACE/]NAME... | --all",
		Short: "Say which operators can become extensions, and what would become of their objects",
		Long:  checkHelp,
		Example: `  kubectl extension migrate check --all
  kubectl extension migrate check operators/sample-operator
  kubectl extension migrate check --all -o json`,
		Args:              o.checkArgs,
		RunE:              o.run,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	o.bind(command, "Check all operators of the cluster.")
	o.output.Bind(command, "o", "Format of the answer.")
	o.images.Bind(flags)
	o.cluster.BindInspect(command)
	return command
}

// selection says which operators a command is about, and what becomes of them.
type selection struct {
	all     bool
	name    string
	account string
}

func (o *selection) bind(command *cobra.Command, all string) {
	flags := command.Flags()
	flags.BoolVar(&o.all, "all", false, all)
	flags.StringVar(&o.name, "name", "", "Name of the extension; by default that of the Subscription.")
	flags.StringVar(&o.account, "service-account", "", "ServiceAccount of extensions whose OperatorGroup names none; by default one is made.")
	cli.NoFiles(command, "name", "service-account")
}

// check asks the cluster about those that are selected.
func (o *selection) check(ctx context.Context, cluster *migration.Cluster, args []string, bundles inspect.Request) (migration.Result, error) {
	names, err := subscriptionNames(args)
	if err != nil {
		return migration.Result{}, err
	}
	return cluster.Check(ctx, migration.Options{
		Subscriptions: names, Choice: classic.Choice{Name: o.name, ServiceAccount: o.account}, Bundle: bundles,
	})
}

func (o *selection) checkArgs(_ *cobra.Command, args []string) error {
	switch {
	case o.all && len(args) > 0:
		return errors.New("--all stands in the place of names: leave one of them out")
	case !o.all && len(args) == 0:
		return errors.New("give the names of Subscriptions, or --all")
	case o.name != "" && len(args) != 1:
		return errors.New("--name is for a single operator")
	}
	for _, one := range []string{o.name, o.account} {
		if problems := validation.IsDNS1123Subdomain(one); one != "" && len(problems) > 0 {
			return fmt.Errorf("%q cannot be a name: %s", one, problems[0])
		}
	}
	_, err := subscriptionNames(args)
	return err
}

// subscriptionNames are those of a command line.
func subscriptionNames(args []string) ([]types.NamespacedName, error) {
	var names []types.NamespacedName
	for _, arg := range args {
		namespace, name, isPath := strings.Cut(arg, "/")
		if !isPath {
			namespace, name = "", arg
		}
		if len(validation.IsDNS1123Subdomain(name)) > 0 || isPath && len(validation.IsDNS1123Label(namespace)) > 0 {
			return nil, fmt.Errorf("%q cannot be a Subscription: it has to be NAME or NAMESPACE/NAME", arg)
		}
		names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return names, nil
}

func (o *check) run(command *cobra.Command, args []string) error {
	cluster, err := open(command.Context(), &o.cluster)
	if err != nil {
		return err
	}
	result, err := o.check(command.Context(), cluster, args, inspect.Request{Bundles: o.images.Bundles(), Certificates: cli.ClusterIssuer})
	if err != nil {
		return err
	}
	if o.output.String() == cli.JSON {
		report, err := result.Report()
		if err == nil {
			err = cli.Print(command.OutOrStdout(), o.output, report)
		}
		if err != nil {
			return err
		}
		return verdict(result)
	}
	tellUnknown(command, result)
	if len(result.Operators) == 0 {
		fmt.Fprintln(command.ErrOrStderr(), "there are no Subscriptions")
		return nil
	}
	if err := printResult(command.OutOrStdout(), result, len(args) > 0); err != nil {
		return err
	}
	return verdict(result)
}

// tellUnknown says what could not be read, and what is decided without.
func tellUnknown(command *cobra.Command, result migration.Result) {
	for _, text := range result.Unknown {
		fmt.Fprintln(command.ErrOrStderr(), "not known: "+cli.Printable(text))
	}
}

// verdict is nil if all can be moved that were not.
func verdict(result migration.Result) error {
	blocked := 0
	for i := range result.Operators {
		if state := result.Operators[i].State; state == classic.Ineligible || state == classic.Conflict {
			blocked++
		}
	}
	if blocked == 0 {
		return nil
	}
	return fmt.Errorf("%s of %d cannot be moved", cli.Counted(blocked, "operator"), len(result.Operators))
}

// printResult prints a table, the findings of each operator and, for those that are named, what
// becomes of each object.
func printResult(to io.Writer, result migration.Result, withObjects bool) error {
	const gap = 3
	table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
	fmt.Fprintln(table, "SUBSCRIPTION\tPACKAGE\tVERSION\tSTATE\tEXTENSION\tADOPTED\tCREATED\tDELETED\tRESTARTED")
	for i := range result.Operators {
		fmt.Fprintln(table, strings.Join(cells(&result.Operators[i]), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range result.Operators {
		if err := printOne(to, &result.Operators[i], withObjects); err != nil {
			return err
		}
	}
	return nil
}

// maxPackage is more than the name of a package has, in bytes.
const maxPackage = 64

func cells(one *migration.Checked) []string {
	pkg, installed := one.Installed()
	extension := "-"
	switch {
	case one.Translation.Extension != nil:
		extension = one.Translation.Extension.Name
	case one.Operator.Extension != nil:
		extension = one.Operator.Extension.Name
	}
	// The name of the package is whatever somebody has written into the Subscription: the API server does not look at it.
	row := []string{one.Operator.Name.String(), cmp.Or(excerpt.Line(pkg, maxPackage), "-"), cmp.Or(installed.Version, "-"), string(one.State), extension}
	for _, n := range []int{len(one.Fates.Adopted), len(one.Created), len(one.Fates.Deleted), len(one.Restarted)} {
		text := "-"
		if len(one.Rendered) > 0 {
			text = strconv.Itoa(n)
		}
		row = append(row, text)
	}
	return row
}

func printOne(to io.Writer, one *migration.Checked, withObjects bool) error {
	var findings []string
	for _, finding := range one.Findings {
		findings = append(findings, finding.String())
	}
	sections := []cli.Section{{Lines: findings}, {Title: "dropped:", Lines: one.Translation.Dropped}}
	if withObjects {
		sections = append(sections,
			cli.Section{Title: "taken over:", Lines: keysIn(one.Fates.Adopted)},
			cli.Section{Title: "labelled before, as nothing says whose they are:", Lines: texts(one.Unmarked)},
			cli.Section{Title: "created:", Lines: texts(one.Created)},
			cli.Section{Title: "deleted:", Lines: keysIn(one.Fates.Deleted)},
			cli.Section{Title: "stays, without the marks of classic OLM:", Lines: keysIn(one.Fates.Stays)},
			cli.Section{Title: "workloads whose pods restart:", Lines: restarts(one.Restarted)},
			cli.Section{Title: "rights that the ServiceAccount lacks:", Lines: one.Missing})
	}
	sections[0].Title = one.Operator.Name.String() + ":"
	if len(findings) == 0 && !withObjects {
		return nil
	}
	return cli.PrintSections(to, sections)
}

func texts(keys []object.Key) []string {
	var lines []string
	for _, key := range keys {
		lines = append(lines, key.String())
	}
	return lines
}

func keysIn(objects []classic.Object) []string {
	var lines []string
	for i := range objects {
		lines = append(lines, objects[i].Key.String())
	}
	return lines
}

func restarts(workloads []object.Reference) []string {
	var lines []string
	for _, one := range workloads {
		lines = append(lines, one.String())
	}
	return lines
}
