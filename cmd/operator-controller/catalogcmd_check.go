package main

import (
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
)

// catalogCheck is the command line of catalog check.
type catalogCheck struct {
	output   string
	catalogs catalogFlags
}

func newCatalogCheckCommand() *cobra.Command {
	o := catalogCheck{output: outputText}
	command := &cobra.Command{
		Use:   "check CATALOG",
		Short: "List every problem of a catalog",
		Long: `List every problem of a catalog, one per line, with the file and the object that
it is in, sorted.

An error is what makes something of the catalog unusable, or what cannot be meant.
A warning is what works, but maybe not as you think, or not with other readers of
catalogs. A note is what is fine if it is meant.

` + catalogHelp + `

Exit codes: 0 no errors, 1 errors, or the catalog could not be had, 2 wrong usage.`,
		Example: `  operator-controller catalog check ./catalog
  operator-controller catalog check registry.example/catalog:latest -o json
  generate-catalog | operator-controller catalog check -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	command.Flags().StringVarP(&o.output, "output", "o", o.output, problemsFlag)
	o.catalogs.bind(command.Flags())
	return command
}

func (o catalogCheck) run(command *cobra.Command, from string) error {
	if err := checkProblemsOutput(o.output); err != nil {
		return misuse(command, err)
	}
	reader, err := o.catalogs.reader(command)
	if err != nil {
		return err
	}
	source, err := catalogsource.Parse(from)
	if err != nil {
		return misuse(command, err)
	}
	var problems []catalogcheck.Problem
	err = reader.Files(command.Context(), source, func(files fs.FS) (err error) {
		problems, err = catalogcheck.Check(command.Context(), files)
		return err
	})
	if err != nil {
		return trustError(err)
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
