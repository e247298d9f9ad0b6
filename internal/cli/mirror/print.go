package mirror

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/imagecopy"
	"github.com/clusterextensions/operator-controller/internal/mirror"
)

// print prints what was copied, and what to apply, as the format says.
func (o *command) print(made *cobra.Command, found *found, results []imagecopy.Result, mappings []mirror.Mapping) error {
	to := made.OutOrStdout()
	conf, err := mirror.RegistriesConf(mappings, o.plainHTTP)
	if err != nil {
		return err
	}
	sets := mirror.Sets(mappings, found.repository)
	switch o.output.String() {
	case toml:
		_, err := io.WriteString(to, conf)
		return err
	case cli.Text:
		if err := printImages(to, found, results); err != nil {
			return err
		}
		if o.dryRun {
			return nil
		}
		if _, err := fmt.Fprintf(to, "\n# registries.conf\n%s\n# on OpenShift, in its place\n", conf); err != nil {
			return err
		}
	}
	return cli.PrintObjects(to, o.output, sets, func(set map[string]any) any { return set }, func(set map[string]any) (string, error) {
		text, err := yaml.Marshal(set)
		return string(text), err
	})
}

// printImages prints a line for each image, sorted, and the sum.
func printImages(to io.Writer, found *found, results []imagecopy.Result) error {
	sorted := slices.Clone(results)
	slices.SortFunc(sorted, func(a, b imagecopy.Result) int { return strings.Compare(a.Name, b.Name) })
	users := found.forWhom()
	const gap = 2
	table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tSIZE\tATTACHED\tFOR")
	var sum int64
	for _, one := range sorted {
		size, attached := mebibytes(one.Bytes), strconv.Itoa(one.Attached)
		if one.Err != nil {
			size, attached = "missing", "-"
		} else {
			sum += one.Bytes
		}
		fmt.Fprintln(table, strings.Join([]string{cli.Printable(one.Name), size, attached, cli.Printable(users[one.Name])}, "\t"))
	}
	fmt.Fprintln(table, strings.Join([]string{cli.Counted(len(sorted), "image"), mebibytes(sum), "", ""}, "\t"))
	return table.Flush()
}

// mebibytes is a size for people. Images have layers in common, so that all of them take less
// than the sum.
func mebibytes(size int64) string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%.1f MiB", float64(size)/mebibyte)
}
