package migrate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/migration"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

const catalogsHelp = `Print the ClusterCatalogs that serve in the place of the CatalogSources of the cluster, and
say on standard error what becomes of each and what a ClusterCatalog cannot have.

A CatalogSource has to have an image. One whose image a ClusterCatalog serves already is
not made twice: that ClusterCatalog is only annotated. CatalogSources stay as they are.

With --apply, they are written, as you; with --dry-run besides, they are only tried. The image
has to hold a file-based catalog, which the controller finds out: see the status of the
ClusterCatalog.

That a CatalogSource cannot be moved to which a Subscription refers is an error.`

// catalogs is the command line of migrate catalogs.
type catalogs struct {
	apply, dryRun bool
	output        *cli.Choice
	cluster       cli.Cluster
}

func newCatalogsCommand() *cobra.Command {
	o := catalogs{output: cli.NewOutput(cli.YAML, cli.JSON)}
	command := &cobra.Command{
		Use:   "catalogs",
		Short: "Print or write the ClusterCatalogs in the place of CatalogSources",
		Long:  catalogsHelp,
		Example: `  kubectl extension migrate catalogs > catalogs.yaml
  kubectl extension migrate catalogs --apply`,
		Args: cobra.NoArgs,
		RunE: o.run,
	}
	flags := command.Flags()
	flags.BoolVar(&o.apply, "apply", false, "Write them.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "With --apply: only try it.")
	o.output.Bind(command, "o", "Format of the manifest.")
	o.cluster.Bind(command)
	return command
}

func (o *catalogs) run(command *cobra.Command, _ []string) error {
	switch {
	case o.dryRun && !o.apply:
		return program.Misuse(command, errors.New("without --apply nothing is written: leave out --dry-run"))
	case o.apply && command.Flags().Changed("output"):
		return program.Misuse(command, errors.New("with --apply nothing is printed: leave out --output"))
	}
	config, err := o.cluster.Config()
	if err != nil {
		return err
	}
	cluster, err := migration.New(config, nil)
	if err != nil {
		return err
	}
	moves, err := cluster.Catalogs(command.Context())
	if err != nil {
		return err
	}
	refused := tell(command, moves)
	if o.apply {
		err = o.write(command, cluster, moves)
	} else {
		err = o.print(command, moves)
	}
	if err == nil && refused > 0 {
		err = fmt.Errorf("%s cannot be moved to which Subscriptions refer", cli.Counted(refused, "CatalogSource"))
	}
	return err
}

// tell says what becomes of each, and counts those that are in use and cannot be moved.
func tell(command *cobra.Command, moves []classic.CatalogMove) (refused int) {
	if len(moves) == 0 {
		fmt.Fprintln(command.ErrOrStderr(), "there are no CatalogSources")
	}
	for i := range moves {
		move := &moves[i]
		text := move.Why
		switch move.Fate {
		case classic.CatalogCreated:
			text = fmt.Sprintf("ClusterCatalog %q is made of it", move.Catalog.Name)
		case classic.CatalogAdopted:
			text = fmt.Sprintf("ClusterCatalog %q has its image, and is annotated", move.Catalog.Name)
		case classic.CatalogServed:
			text = fmt.Sprintf("ClusterCatalog %q has its image", move.Catalog.Name)
		case classic.CatalogRefused:
			if move.IsUsed {
				refused++
			}
		}
		fmt.Fprintln(command.ErrOrStderr(), cli.Printable(fmt.Sprintf("%s: %s", move.Key(), text)))
		for _, note := range move.Notes {
			fmt.Fprintln(command.ErrOrStderr(), "  "+cli.Printable(note))
		}
	}
	return refused
}

func (o *catalogs) print(command *cobra.Command, moves []classic.CatalogMove) error {
	var documents []permission.Document
	for i := range moves {
		if isWritten(&moves[i]) {
			documents = append(documents, permission.Document{Object: migration.WrittenCatalog(moves[i].Catalog)})
		}
	}
	return cli.PrintDocuments(command.OutOrStdout(), o.output, documents)
}

func (o *catalogs) write(command *cobra.Command, cluster *migration.Cluster, moves []classic.CatalogMove) error {
	done := "written"
	if o.dryRun {
		done = "written (dry run)"
	}
	// One that the API server refuses, for an image that cannot be one, keeps no other from being written.
	var errs []error
	for i := range moves {
		if !isWritten(&moves[i]) {
			continue
		}
		if err := cluster.ApplyCatalog(command.Context(), moves[i], o.dryRun); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", moves[i].Key(), err))
			continue
		}
		if _, err := fmt.Fprintf(command.OutOrStdout(), "clustercatalog/%s %s\n", moves[i].Catalog.Name, done); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	return errors.Join(errs...)
}

// isWritten says that there is something to write.
func isWritten(move *classic.CatalogMove) bool {
	return move.Fate == classic.CatalogCreated || move.Fate == classic.CatalogAdopted
}
