package migrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/migration"
)

const runHelp = `Make operators of classic OLM extensions, in place.

Each is checked first, as kubectl extension migrate check does, and with --dry-run that is
all. Everything that is to be touched is written to a folder, --backup, and what it takes to
go back to the extension itself. Then, for each operator:

  1  the extension is created, suspended, with the version that is installed
  2  the ClusterServiceVersion and the Subscription are deleted, and nothing that they own
  3  the extension takes over what they have left, as its ServiceAccount: objects, custom
     resources and rights stay, and the pods of Deployments are replaced once at most
  4  what classic OLM has made under other names is deleted, once the extension has its own
  5  the extension goes on as the Subscription did

What becomes of classic OLM meanwhile:

  quiet   its programs are stopped, and started again in the end
  live    they go on; where they may not be stopped
  strip   they go on, and the finalizer of the ClusterServiceVersion is left in place; where
          that may not be taken off. Not for operators that convert custom resources.

Whatever stops it, migrate cleanup goes on from there, and migrate rollback takes it back.
With --all, operators that cannot be moved are left out, which is an error.

Everything is done with your own rights, but what the extension does.`

// defaultTimeout bounds each wait of a move. Images are pulled and pods started in it.
const defaultTimeout = 10 * time.Minute

// moving is what the commands have in common that write.
type moving struct {
	yes     bool
	timeout time.Duration
	images  cli.Images
	cluster cli.Cluster
}

func (o *moving) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&o.yes, "yes", false, "Do not ask.")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "How long each wait may take.")
	o.images.Bind(flags)
	o.cluster.BindInspect(command)
}

// how says what is done on standard output, a line each.
func (o *moving) how(command *cobra.Command) migration.Run {
	return migration.Run{
		Timeout: o.timeout, Bundle: o.request(), Now: time.Now,
		Say: func(line string) { fmt.Fprintln(command.OutOrStdout(), cli.Printable(line)) },
	}
}

func (o *moving) request() inspect.Request {
	return inspect.Request{Bundles: o.images.Bundles(), Certificates: cli.ClusterIssuer}
}

// confirmed asks, unless the person has said so before.
func (o *moving) confirmed(command *cobra.Command, question string) error {
	if o.yes {
		return nil
	}
	fmt.Fprintf(command.ErrOrStderr(), "%s [y/N] ", question)
	answer, err := bufio.NewReader(command.InOrStdin()).ReadString('\n')
	if err != nil && answer == "" {
		return errors.New("nobody answers: nothing was written; --yes does not ask")
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was written")
	}
	return nil
}

// run is the command line of migrate run.
type run struct {
	selection
	moving

	dryRun bool
	backup string
	mode   *cli.Choice
}

func newRunCommand() *cobra.Command {
	o := run{mode: cli.NewChoice("mode", classic.Quiet, classic.Live, classic.Strip)}
	command := &cobra.Command{
		Use:   "run [NAMESPACE/]NAME... | --all",
		Short: "Move operators",
		Long:  runHelp,
		Example: `  kubectl extension migrate run operators/sample-operator --dry-run
  kubectl extension migrate run --all --backup ./backup`,
		Args:              o.checkArgs,
		RunE:              o.run,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	o.selection.bind(command, "Move all operators of the cluster that can be moved.")
	flags.StringVar(&o.backup, "backup", "migration-backup", "Folder to which all is written that is to be touched.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only check.")
	o.mode.Bind(command, "", "What becomes of classic OLM meanwhile.")
	o.moving.bind(command)
	return command
}

func (o *run) run(command *cobra.Command, args []string) error {
	cluster, err := open(command.Context(), &o.cluster)
	if err != nil {
		return err
	}
	result, err := o.check(command.Context(), cluster, args, o.request())
	if err != nil {
		return err
	}
	tellUnknown(command, result)
	o.cluster.WarnAbsence(command.Context(), command)
	if len(result.Operators) == 0 {
		fmt.Fprintln(command.ErrOrStderr(), "there are no Subscriptions")
		return nil
	}
	if err := printResult(command.OutOrStdout(), result, true); err != nil {
		return err
	}
	left := verdict(result)
	if o.dryRun || left != nil && !o.all {
		return left
	}
	eligible, err := o.eligible(result)
	if err != nil {
		return err
	}
	if len(eligible) == 0 {
		fmt.Fprintln(command.ErrOrStderr(), "there is nothing to move")
		return left
	}
	if err := o.confirmed(command, o.question(len(eligible))); err != nil {
		return err
	}
	how := o.how(command)
	how.Mode, how.Backup = classic.Mode(o.mode.String()), o.backup
	return errors.Join(cluster.Move(command.Context(), eligible, how), left)
}

// question says what of the move is about more than the operators.
func (o *run) question(operators int) string {
	meanwhile := ""
	if o.mode.String() == string(classic.Quiet) {
		meanwhile = ", with classic OLM stopped meanwhile"
	}
	return fmt.Sprintf("Move %s%s?", cli.Counted(operators, "operator"), meanwhile)
}

// eligible are those that can be moved in the mode that was chosen.
func (o *run) eligible(result migration.Result) ([]migration.Checked, error) {
	var found []migration.Checked
	for _, one := range result.Operators {
		if one.State != classic.Eligible {
			continue
		}
		if problem := classic.Mode(o.mode.String()).Problem(one.Operator); problem != "" {
			return nil, errors.New(problem)
		}
		found = append(found, one)
	}
	return found, nil
}

const cleanupHelp = `Complete what migrate run has begun: each step that is done is left out, and the others
follow. The extension of each operator says what the move is about.`

const rollbackHelp = `Give operators back to classic OLM, by the names of their extensions, whether or not their
moves have ended. The content stays, with custom resources; classic OLM takes it over by its
names, and makes anew the rights that it had. What the extension has added is deleted.

Classic OLM has to run, or to be one that migrate run has stopped.`

// ending is the command line of migrate cleanup and migrate rollback.
type ending struct {
	moving

	question string
	end      func(*migration.Cluster, context.Context, []string, migration.Run) error
}

func newCleanupCommand() *cobra.Command {
	o := ending{question: "Complete the move of %s?", end: (*migration.Cluster).Cleanup}
	return o.command("cleanup EXTENSION...", "Complete moves that have stopped", cleanupHelp)
}

func newRollbackCommand() *cobra.Command {
	o := ending{question: "Give %s back to classic OLM?", end: (*migration.Cluster).Rollback}
	return o.command("rollback EXTENSION...", "Give operators back to classic OLM", rollbackHelp)
}

func (o *ending) command(use, short, long string) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.MinimumNArgs(1), RunE: o.run, ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.bind(command)
	return command
}

// asks names what the question is about.
func (o *ending) asks(extensions []string) string {
	return fmt.Sprintf(o.question, strings.Join(extensions, ", "))
}

func (o *ending) run(command *cobra.Command, args []string) error {
	for _, name := range args {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return program.Misuse(command, fmt.Errorf("%q cannot be the name of a ClusterExtension", name))
		}
	}
	cluster, err := open(command.Context(), &o.cluster)
	if err != nil {
		return err
	}
	if err := o.confirmed(command, o.asks(args)); err != nil {
		return err
	}
	return o.end(cluster, command.Context(), args, o.how(command))
}
