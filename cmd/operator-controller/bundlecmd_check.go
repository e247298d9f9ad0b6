package main

import (
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundlecheck"
)

// bundleCheck is the command line of bundle check.
type bundleCheck struct {
	output  string
	content contentFlags
}

func newBundleCheckCommand() *cobra.Command {
	o := bundleCheck{output: outputText}
	command := &cobra.Command{
		Use:   "check DIR|IMAGE",
		Short: "List every problem of a bundle",
		Long: `List every problem of a bundle, one per line, with the file and the field that it
is in, sorted.

An error is what keeps the bundle from being installed. A warning is what works, but
maybe not as you think, or only where something else is. The bundle is also rendered
in every install mode that it supports: some errors show only there.

What is no folder here is the reference of an image, which is pulled. Registries,
mirrors and credentials are those of the system.

Exit codes: 0 no errors, 1 errors, or the bundle could not be had, 2 wrong usage.`,
		Example: `  operator-controller bundle check ./bundle
  operator-controller bundle check registry.example/my-operator:v1.0.0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	command.Flags().StringVarP(&o.output, "output", "o", o.output, problemsFlag)
	o.content.bind(command.Flags())
	return command
}

func (o bundleCheck) run(command *cobra.Command, from string) error {
	if err := checkProblemsOutput(o.output); err != nil {
		return misuse(command, err)
	}
	var problems []bundlecheck.Problem
	err := o.content.readBundle(command.Context(), from, func(files fs.FS) (err error) {
		problems, err = bundlecheck.Check(files)
		return err
	})
	if err != nil {
		return err
	}
	if err := printProblems(command.OutOrStdout(), o.output, problems); err != nil {
		return err
	}
	count := map[bundlecheck.Severity]int{}
	for _, problem := range problems {
		count[problem.Severity]++
	}
	return verdict(command.ErrOrStderr(), count[bundlecheck.Error], count[bundlecheck.Warning])
}
