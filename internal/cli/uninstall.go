package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/clusterextensions/operator-controller/internal/preview"
)

// PrintUninstall prints a preview of a deletion for people.
func PrintUninstall(to io.Writer, made preview.Uninstall) error {
	for _, line := range uninstallHeading(made) {
		if _, err := fmt.Fprintln(to, Printable(line)); err != nil {
			return err
		}
	}
	if len(made.Objects) > 0 {
		const gap = 3
		table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
		fmt.Fprintln(table, "\nACTION\tOBJECT\tDETAIL")
		for _, shown := range made.Objects {
			fmt.Fprintf(table, "%s\t%s\t%s\n", shown.Action, Printable(shown.String()), Printable(shown.Detail))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	var order, definitions, namespaces []string
	for i, line := range made.Order {
		order = append(order, fmt.Sprintf("%d. %s", i+1, line))
	}
	for _, used := range made.Definitions {
		definitions = append(definitions, used.String())
	}
	for _, used := range made.Namespaces {
		namespaces = append(namespaces, used.String())
	}
	var warnings []string
	if made.Warning != "" {
		warnings = []string{made.Warning}
	}
	return PrintSections(to, []Section{
		{"custom resources, in all namespaces:", definitions},
		{"objects that the extension does not own, in its Namespaces:", namespaces},
		{"in this order:", order},
		{"warning:", warnings},
		{"not known:", made.Unknown},
		{"in the way:", made.Obstacles},
	})
}

// uninstallHeading says what it is about, and what it comes to.
func uninstallHeading(made preview.Uninstall) []string {
	installed := "nothing"
	if made.Installed != nil {
		installed = fmt.Sprintf("%q version %q", made.Installed.Name, made.Installed.Version)
	}
	lines := []string{
		fmt.Sprintf("%s: deletion, with %s installed", made.Extension, installed),
		"uninstall policy: " + made.Policy,
	}
	if made.PolicyUnknown != "" {
		lines = append(lines, made.PolicyUnknown)
	}
	if made.Deleting != "" {
		lines = append(lines, made.Deleting)
	}
	return append(lines, made.Sum())
}
