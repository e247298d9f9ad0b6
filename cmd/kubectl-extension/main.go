// Command kubectl-extension is the tool for people who write, offer and install
// extensions. kubectl finds it in PATH, as kubectl extension; it runs by its own name as
// well.
package main

import (
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/clusterextensions/operator-controller/internal/cli/approve"
	"github.com/clusterextensions/operator-controller/internal/cli/bundle"
	"github.com/clusterextensions/operator-controller/internal/cli/catalog"
	"github.com/clusterextensions/operator-controller/internal/cli/console"
	"github.com/clusterextensions/operator-controller/internal/cli/crd"
	"github.com/clusterextensions/operator-controller/internal/cli/explain"
	"github.com/clusterextensions/operator-controller/internal/cli/get"
	"github.com/clusterextensions/operator-controller/internal/cli/graph"
	"github.com/clusterextensions/operator-controller/internal/cli/install"
	"github.com/clusterextensions/operator-controller/internal/cli/migrate"
	"github.com/clusterextensions/operator-controller/internal/cli/mirror"
	"github.com/clusterextensions/operator-controller/internal/cli/plan"
	"github.com/clusterextensions/operator-controller/internal/cli/policy"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/cli/rollback"
	"github.com/clusterextensions/operator-controller/internal/cli/suspend"
	"github.com/clusterextensions/operator-controller/internal/cli/tree"
	"github.com/clusterextensions/operator-controller/internal/cli/verify"
)

// version is stamped by the linker, and empty where that was not done.
var version string

// displayName is how people call the tool, and how it names itself.
const displayName = "kubectl extension"

const help = `Check catalogs and bundles, explain what is installed from them, and why, and decide on
upgrades.

Results go to standard output, and what is for people alone to standard error. There
are no colours. A cluster is reached as kubectl reaches it, with your own rights.

Exit codes: 0 done, and no error was found; 1 not done, or one was found by a command
that looks for some; 2 the command line makes no sense, or names a file that cannot be
read.`

func main() {
	// What client-go logs of its retries is for servers: a command ends with what became of it.
	klog.SetLogger(logr.Discard())
	program.Run(newCommand())
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:         "kubectl-extension",
		Short:       "Check catalogs and bundles, and explain what is installed from them, and why",
		Long:        help,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: displayName},
		Args:        cobra.NoArgs,
		RunE:        func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	bundles := bundle.NewCommand()
	bundles.AddCommand(install.NewTryCommand())
	command.AddCommand(
		get.NewCommand(), tree.NewCommand(), install.NewCommand(),
		catalog.NewCommand(), bundles, explain.NewCommand(), graph.NewCommand(), crd.NewCommand(),
		approve.NewCommand(), suspend.NewCommand(), suspend.NewResumeCommand(),
		plan.NewCommand(), rollback.NewCommand(), migrate.NewCommand(), console.NewCommand(),
		mirror.NewCommand(),
		verify.NewCommand(), policy.NewCommand(),
	)
	return program.New(command, program.Version(version))
}
