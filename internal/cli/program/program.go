// Package program has what our two programs have in common: how they are run, their
// version, and how they end: what a command came to -> an exit code, and where to find
// help for a command line that makes no sense.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
)

// New makes the command the root of a program of this version.
func New(command *cobra.Command, version string) *cobra.Command {
	command.SilenceUsage, command.SilenceErrors = true, true
	command.Version = version
	command.SetVersionTemplate("{{.Version}}\n")
	command.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), version)
			return err
		},
	})
	command.InitDefaultHelpCmd()
	command.InitDefaultCompletionCmd()
	for _, below := range command.Commands() {
		switch {
		case below.Name() == "help":
			below.Args = helpTopic
		case below.Name() == "completion":
			// Without this, what is none of its commands is taken for a wish for help.
			below.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
		}
	}
	return strict(command)
}

// helpTopic refuses what is no command.
func helpTopic(command *cobra.Command, args []string) error {
	_, rest, err := command.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown command %q", rest[0])
	}
	return err
}

// Run runs the command until it is done or a signal ends it, and then ends the process. A
// process that this program has started to render a chart does that instead.
func Run(command *cobra.Command) {
	helmchart.Serve()
	ctx := ctrl.SetupSignalHandler()
	if err := interrupted(ctx, command.ExecuteContext(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", shown(err))
		os.Exit(Code(err))
	}
}

// shown is the text of an error without what would move the cursor or turn writing around:
// it may quote what anybody wrote.
func shown(err error) string {
	return excerpt.Printable(err.Error(), "\n\t")
}

// interrupted says in the place of an error that a signal came, where nothing else was
// wrong.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errors.New("interrupted")
	}
	return err
}

// Exit codes besides zero.
const (
	// Failed says that a command did not succeed, or found an error where it was asked
	// to look for some.
	Failed = 1
	// Usage says that the command line makes no sense.
	Usage = 2
)

// UsageError is about the command line itself.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Code returns the exit code that belongs to the error of a command.
func Code(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return Usage
	}
	return Failed
}

// strict makes errors in the arguments and flags of a command and of all below it
// usage errors that say where to find help.
func strict(command *cobra.Command) *cobra.Command {
	command.SetFlagErrorFunc(Misuse)
	check := command.Args
	command.Args = func(called *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(called, args); err != nil {
			return Misuse(called, err)
		}
		return nil
	}
	for _, below := range command.Commands() {
		strict(below)
	}
	return command
}

// Misuse returns err as a usage error of command.
func Misuse(command *cobra.Command, err error) error {
	return &UsageError{Err: &helpError{err: err, path: command.CommandPath()}}
}

// helpError is an error with where to find help.
type helpError struct {
	err  error
	path string
}

func (e *helpError) Error() string { return e.err.Error() + "\nTry '" + e.path + " --help'." }

func (e *helpError) Unwrap() error { return e.err }
