package main

import (
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// catalogCheck is the command line of catalog check.
type catalogCheck struct {
	output  string
	content contentFlags
}

func newCatalogCheckCommand() *cobra.Command {
	o := catalogCheck{output: outputText}
	command := &cobra.Command{
		Use:   "check DIR|IMAGE",
		Short: "List every problem of a catalog",
		Long: `List every problem of a catalog, one per line, with the file and the object that
it is in, sorted.

An error is what makes something of the catalog unusable, or what cannot be meant.
A warning is what works, but maybe not as you think, or not with other readers of
catalogs.

What is no folder here is the reference of an image, which is pulled. Registries,
mirrors and credentials are those of the system.

Exit codes: 0 no errors, 1 errors, or the catalog could not be had, 2 wrong usage.`,
		Example: `  operator-controller catalog check ./catalog
  operator-controller catalog check registry.example/catalog:latest -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	command.Flags().StringVarP(&o.output, "output", "o", o.output, problemsFlag)
	o.content.bind(command.Flags())
	return command
}

func (o catalogCheck) run(command *cobra.Command, from string) error {
	if err := checkProblemsOutput(o.output); err != nil {
		return misuse(command, err)
	}
	var problems []catalogcheck.Problem
	err := o.content.read(command.Context(), from, image.CatalogContent, func(files fs.FS) (err error) {
		problems, err = catalogcheck.Check(command.Context(), files)
		return err
	})
	if err != nil {
		return err
	}
	if err := printProblems(command.OutOrStdout(), o.output, problems); err != nil {
		return err
	}
	count := map[catalogcheck.Severity]int{}
	for _, problem := range problems {
		count[problem.Severity]++
	}
	return verdict(command.ErrOrStderr(), count[catalogcheck.Error], count[catalogcheck.Warning])
}
