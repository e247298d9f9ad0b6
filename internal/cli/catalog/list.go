package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// schemaVersion changes when what programs read of an answer does.
const schemaVersion = 1

// maxCell bounds a description in a table, in bytes.
const maxCell = 80

// catalogFlags is the command line of commands that read the catalogs of a cluster, or others in
// place of these.
type catalogFlags struct {
	output  *cli.Choice
	from    []string
	reading cli.Catalogs
	cluster cli.Cluster
}

func newCatalogFlags() catalogFlags {
	return catalogFlags{output: cli.NewOutput(cli.Text, cli.JSON, cli.YAML)}
}

// bind gives the flags to a command. Format is the help for that of what it prints.
func (o *catalogFlags) bind(command *cobra.Command, format string) {
	o.output.Bind(command, "o", format)
	command.Flags().StringArrayVar(&o.from, "catalog", nil, "Catalog in place of those of a cluster: "+catalogsource.Usage+". Repeat it for several.")
	o.reading.Bind(command.Flags())
	o.cluster.BindInspect(command)
}

// check refuses flags that would say nothing: those of the cluster where catalogs are named, and
// those of servers where none is.
func (o *catalogFlags) check(command *cobra.Command) error {
	err := o.reading.CheckUnused(command)
	if len(o.from) > 0 {
		err = o.cluster.CheckUnused(command)
	}
	if err != nil {
		return &program.UsageError{Err: err}
	}
	return nil
}

// print writes an answer in the format that is wanted, of which text is for people.
func (o *catalogFlags) print(command *cobra.Command, answer any, text func(io.Writer) error) error {
	if o.output.String() == cli.Text {
		return text(command.OutOrStdout())
	}
	return cli.Print(command.OutOrStdout(), o.output, answer)
}

const formatOfList = "Format of the list."

// browse is the command line of catalog list and catalog search.
type browse struct{ catalogFlags }

// row is a package of a catalog.
type row struct {
	catalogsummary.Package

	Catalog  string `json:"catalog"`
	Priority int32  `json:"priority"`
	// Preferred says that of all catalogs with the package this one has the highest
	// priority. Where several have it, none is preferred.
	Preferred bool `json:"preferred"`
}

// found is the answer as programs read it.
type found struct {
	SchemaVersion int   `json:"schemaVersion"`
	Packages      []row `json:"packages"`
}

func newListCommand() *cobra.Command {
	o := browse{newCatalogFlags()}
	command := &cobra.Command{
		Use:   "list",
		Short: "List the packages of catalogs",
		Long: `List the packages of catalogs, one per line: those of the catalogs of a cluster, which
come through the proxy of the API server with your own rights, or those that --catalog
names.

Version, provider and description are those of the head of the default channel. Where
several catalogs have a package, a star marks the one with the highest priority.

` + cli.CatalogHelp,
		Example: `  kubectl extension catalog list
  kubectl extension catalog list --catalog ./catalog -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command, "") },
	}
	o.bind(command, formatOfList)
	return command
}

func newSearchCommand() *cobra.Command {
	o := browse{newCatalogFlags()}
	command := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find packages by a text",
		Long: `Find the packages whose name, display name, keywords or description have a text in
them, in upper or lower case. First come those that are called that, then those whose
name begins so, then those with a word that does, and then the rest.

Catalogs are read as by "catalog list". That nothing is found is no error.`,
		Example: `  kubectl extension catalog search postgres
  kubectl extension catalog search postgres --catalog registry.example/catalog:latest`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	o.bind(command, formatOfList)
	return command
}

func (o *browse) run(command *cobra.Command, text string) error {
	rows, err := o.read(command)
	if usage, ok := errors.AsType[*program.UsageError](err); ok {
		return program.Misuse(command, usage.Err)
	}
	if err != nil && len(rows) == 0 {
		return err
	}
	rows = arrange(rows, text)
	return errors.Join(o.print(command, found{schemaVersion, rows}, func(to io.Writer) error {
		if len(rows) == 0 {
			none := "there are no such packages"
			if text == "" {
				catalog := "CATALOG"
				if len(o.from) == 1 {
					catalog = cli.Printable(o.from[0])
				}
				none = "there are no packages; for what else a catalog has: kubectl extension catalog check " + catalog
			}
			fmt.Fprintln(command.ErrOrStderr(), none)
			return nil
		}
		return printTable(to, rows)
	}), err)
}

// read gives the packages of all catalogs that can be read, and why others cannot.
func (o *browse) read(command *cobra.Command) ([]row, error) {
	if err := o.check(command); err != nil {
		return nil, err
	}
	if len(o.from) == 0 {
		return o.readCluster(command)
	}
	return o.readNamed(command)
}

// readNamed reads the catalogs that the command line names.
func (o *browse) readNamed(command *cobra.Command) ([]row, error) {
	reader, err := o.reading.Reader(command)
	if err != nil {
		return nil, err
	}
	sources, err := catalogsource.ParseAll(o.from)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	var rows []row
	var problems []error
	for _, source := range sources {
		packages, err := reader.Summary(command.Context(), source)
		problems = append(problems, cli.CatalogError(err))
		rows = append(rows, rowsOf(packages, source.Name, 0)...)
	}
	return rows, errors.Join(problems...)
}

// readCluster reads the catalogs of the cluster.
func (o *browse) readCluster(command *cobra.Command) ([]row, error) {
	config, err := o.cluster.InspectConfig()
	if err != nil {
		return nil, err
	}
	reader, err := inspect.NewCatalogReader(command.Context(), config)
	if err != nil {
		return nil, err
	}
	catalogs, err := reader.Catalogs(command.Context())
	if err != nil {
		return nil, err
	}
	var rows []row
	var problems []error
	for _, catalog := range catalogs {
		packages, err := reader.Summary(command.Context(), catalog)
		problems = append(problems, err)
		rows = append(rows, rowsOf(packages, catalog.Name, catalog.Spec.Priority)...)
	}
	return rows, errors.Join(problems...)
}

func rowsOf(packages []catalogsummary.Package, catalog string, priority int32) []row {
	rows := make([]row, 0, len(packages))
	for _, p := range packages {
		rows = append(rows, row{Package: p, Catalog: catalog, Priority: priority})
	}
	return rows
}

// arrange keeps the rows that fit a text, best first, and then by name, priority and catalog.
func arrange(rows []row, text string) []row {
	best, times := map[string]int32{}, map[string]int{}
	for _, r := range rows {
		switch most, known := best[r.Name]; {
		case !known || r.Priority > most:
			best[r.Name], times[r.Name] = r.Priority, 1
		case r.Priority == most:
			times[r.Name]++
		}
	}
	hits := []row{}
	for _, r := range rows {
		r.Preferred = r.Priority == best[r.Name] && times[r.Name] == 1
		if r.Match(text) < catalogsummary.NoHit {
			hits = append(hits, r)
		}
	}
	slices.SortStableFunc(hits, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Match(text), b.Match(text)), cmp.Compare(a.Name, b.Name),
			cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Catalog, b.Catalog))
	})
	return hits
}

func printTable(to io.Writer, rows []row) error {
	count := map[string]int{}
	for _, r := range rows {
		count[r.Name]++
	}
	const gap = 2
	table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
	fmt.Fprintln(table, "PACKAGE\tCATALOG\tCHANNEL\tVERSION\tPROVIDER\tDESCRIPTION")
	for _, r := range rows {
		catalog := r.Catalog
		if r.Preferred && count[r.Name] > 1 {
			catalog += " *"
		}
		description := cmp.Or(r.Description, r.DisplayName)
		if r.Deprecated {
			description = "(deprecated) " + description
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", cli.Printable(r.Name), cli.Printable(catalog), cli.Printable(r.Channel),
			cli.Printable(r.Version), cli.Printable(r.Provider), cli.Printable(excerpt.Line(description, maxCell)))
	}
	return table.Flush()
}
