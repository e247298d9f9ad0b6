package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

const testHelp = `Run the tests of a Helm chart that is installed: its hooks of the event test, one at a time,
in Helm's order. The controller never runs them.

They are created with your own rights, as objects of the extension, and go with it when it is deleted. So
tests can have a Pod, a Job, a ConfigMap, a Secret, a Service and a ServiceAccount in the namespace of the
extension; where there is anything else, none is run. Pods run as the ServiceAccount that they name, and
can have nothing of their node. What is there of an earlier run is deleted first, unless the delete policies of the test leave out
before-hook-creation, and only if it belongs to the extension. When all have ended, what hook-succeeded and
hook-failed say is deleted. Whoever interrupts the command leaves the test that runs.

Which tests there are is in the release records, for which you need to read Secrets in the
controller's namespace.`

// defaultTestTimeout is what Helm gives each test.
const defaultTestTimeout = 5 * time.Minute

// test is the command line of bundle test.
type test struct {
	timeout time.Duration
	logs    bool
	output  *cli.Choice
	cluster cli.Cluster
}

func newTestCommand() *cobra.Command {
	o := test{output: cli.NewOutput(cli.Text, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "test [clusterextension/]NAME",
		Short: "Run the tests of a Helm chart that is installed",
		Long:  testHelp,
		Example: `  kubectl extension bundle test web
  kubectl extension bundle test clusterextension/web --logs --timeout 1m`,
		Args: cobra.RangeArgs(1, 2),
		RunE: o.run,
	}
	command.ValidArgsFunction = o.cluster.CompleteNames("", cobra.ShellCompDirectiveNoFileComp)
	flags := command.Flags()
	flags.DurationVar(&o.timeout, "timeout", defaultTestTimeout, "How long each test may take, a second at least.")
	flags.BoolVar(&o.logs, "logs", false, "Print the end of what each test has logged.")
	cli.NoFiles(command, "timeout")
	o.output.Bind(command, "o", "Format of what became of the tests; JSON and YAML when all have ended.")
	o.cluster.BindInspect(command)
	return command
}

func (o *test) run(command *cobra.Command, args []string) error {
	name, err := cli.ExtensionName(args)
	if err != nil {
		return program.Misuse(command, err)
	}
	if o.timeout < time.Second {
		return program.Misuse(command, fmt.Errorf("--timeout %s: it has to be a second at least", o.timeout))
	}
	cluster, err := o.cluster.Inspect(command.Context())
	if err != nil {
		return err
	}
	tests, err := cluster.ChartTests(command.Context(), name)
	if err != nil {
		return err
	}
	if len(tests.Due) == 0 {
		fmt.Fprintf(command.ErrOrStderr(), "clusterextension/%s has no tests\n", name)
	}
	return o.runAll(command, tests)
}

// runAll runs one test after the other, also when one has failed. Text is printed as they end.
func (o *test) runAll(command *cobra.Command, tests *inspect.ChartTests) error {
	ctx := command.Context()
	var ended []inspect.ChartTest
	results := make([]testResult, 0, len(tests.Due))
	for _, due := range tests.Due {
		tell(command, due.Object.GetName()+" runs")
		one, err := tests.Run(ctx, due, o.timeout)
		if err != nil {
			return interruptedAt(one, err)
		}
		result := resultOf(one)
		if o.logs {
			if result.Logs, err = tests.Logs(ctx, one); err != nil { // which fails no test
				tell(command, err.Error())
			}
		}
		if o.output.String() == cli.Text {
			if err := result.print(command.OutOrStdout()); err != nil {
				return err
			}
		}
		ended, results = append(ended, one), append(results, result)
	}
	if err := tests.Clean(ctx, ended); err != nil {
		tell(command, err.Error())
	}
	if o.output.String() != cli.Text {
		if err := cli.Print(command.OutOrStdout(), o.output, results); err != nil {
			return err
		}
	}
	return failureOf(results)
}

// tell is for people, and for what strangers have named.
func tell(command *cobra.Command, text string) {
	fmt.Fprintln(command.ErrOrStderr(), excerpt.Printable(text, "\n"))
}

// What became of tests.
const (
	testPassed  = "Passed"
	testFailed  = "Failed"
	testCreated = "Created" // what is only there for others has nothing to pass
)

// testResult is what programs read of a test.
type testResult struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	Result  string `json:"result"`
	Message string `json:"message,omitempty"`
	Seconds int    `json:"seconds"`

	Logs []inspect.ContainerLog `json:"logs,omitempty"`
}

func resultOf(one inspect.ChartTest) testResult {
	result := testResult{
		Group: one.Object.Group, Kind: one.Object.Kind, Namespace: one.Object.Namespace, Name: one.Object.Name,
		Result: testPassed, Message: one.Why, Seconds: int(one.Took.Round(time.Second).Seconds()),
	}
	switch {
	case one.Why != "":
		result.Result = testFailed
	case !hook.IsAwaited(one.Hook.Object):
		result.Result = testCreated
	}
	return result
}

// String is a line for people.
func (r testResult) String() string {
	switch r.Result {
	case testFailed:
		return r.Name + ": failed: " + r.Message
	case testCreated:
		return r.Name + ": created"
	default:
		return fmt.Sprintf("%s: passed in %d s", r.Name, r.Seconds)
	}
}

func (r testResult) print(to io.Writer) error {
	if err := cli.PrintLines(to, []testResult{r}); err != nil {
		return err
	}
	for _, log := range r.Logs {
		text := strings.TrimRight(log.Text, "\n")
		if _, err := fmt.Fprintf(to, "log of Pod %s, container %s:\n%s\n", log.Pod, log.Container, text); err != nil {
			return err
		}
	}
	return nil
}

// failureOf is nil if all have passed.
func failureOf(results []testResult) error {
	failed := 0
	for _, result := range results {
		if result.Result == testFailed {
			failed++
		}
	}
	switch failed {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 test of %d has failed", len(results))
	}
	return fmt.Errorf("%d tests of %d have failed", failed, len(results))
}

// interruptedAt says what stays when somebody ends the command.
func interruptedAt(one inspect.ChartTest, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted: %s stays, if it was created", one.Object)
	}
	return err
}
