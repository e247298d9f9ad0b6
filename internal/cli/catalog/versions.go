package catalog

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
)

// versionRow is a bundle as a catalog has it.
type versionRow struct {
	packagecard.Version

	Catalog  string `json:"catalog"`
	Priority int32  `json:"priority"`
}

// versionList is the answer as programs read it.
type versionList struct {
	SchemaVersion int          `json:"schemaVersion"`
	Package       string       `json:"package"`
	Versions      []versionRow `json:"versions"`
}

func newVersionsCommand() *cobra.Command {
	o := lookup{newCatalogFlags()}
	return o.newCommand(&cobra.Command{
		Use:   "versions PACKAGE",
		Short: "List the versions of a package",
		Long: `List the versions of a package, newest first, with the channels that each is in: a star
marks a channel that leads to it. NOTES say what the catalog says against it, and what it
requires that the cluster does not have.

Of a server, no more is read than this package. Where several catalogs have it, those of each
are listed, with the highest priority first.`,
		Example: `  kubectl extension catalog versions sample-operator
  kubectl extension catalog versions sample-operator --catalog ./catalog -o json`,
	}, func(command *cobra.Command, name string, offers []offer) (any, func(io.Writer) error, error) {
		list := versionList{SchemaVersion: schemaVersion, Package: name, Versions: []versionRow{}}
		for _, one := range offers {
			for _, version := range packagecard.Versions(one.pkg, clusterOf(command, one)) {
				list.Versions = append(list.Versions, versionRow{Version: version, Catalog: one.catalog, Priority: one.priority})
			}
		}
		return list, func(to io.Writer) error { return printVersions(to, list, len(offers) > 1) }, nil
	})
}

func printVersions(to io.Writer, list versionList, several bool) error {
	const gap = 2
	table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
	columns := []string{"VERSION", "CHANNELS", "NOTES"}
	if several {
		columns = []string{"VERSION", "CATALOG", "CHANNELS", "NOTES"}
	}
	fmt.Fprintln(table, strings.Join(columns, "\t"))
	for _, row := range list.Versions {
		cells := []string{cmp.Or(row.Version.Version, row.Bundle)}
		if several {
			cells = append(cells, row.Catalog)
		}
		cells = append(cells, channelsOf(row.Version), excerpt.Line(notesOf(row.Version), maxNotes))
		for i := range cells {
			cells[i] = cmp.Or(cli.Printable(cells[i]), "-")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// maxNotes bounds the notes on a version in a table, in bytes.
const maxNotes = 160

// channelsOf are the channels of a version, with a star at those that lead to it.
func channelsOf(version packagecard.Version) string {
	heads := map[string]bool{}
	for _, name := range version.HeadOf {
		heads[name] = true
	}
	names := make([]string, len(version.Channels))
	for i, name := range version.Channels {
		if names[i] = name; heads[name] {
			names[i] += "*"
		}
	}
	return strings.Join(names, ",")
}

func notesOf(version packagecard.Version) string {
	var notes []string
	if version.Deprecated != "" {
		notes = append(notes, "deprecated: "+version.Deprecated)
	}
	return strings.Join(append(notes, version.Lacking...), "; ")
}
