package explain

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// answer is the answer of explain, as programs read it.
type answer struct {
	// Resolved is the chosen bundle; absent if there is an Error.
	Resolved *chosenBundle `json:"resolved,omitempty"`
	Error    string        `json:"error,omitempty"`
	// Image is what the spec names in the place of catalogs; absent if it names none.
	Image string `json:"image,omitempty"`
	// Explanation says what the rest comes to, if it is not plain.
	Explanation string `json:"explanation,omitempty"`
	// Installed is absent if nothing is.
	Installed *installedBundle `json:"installed,omitempty"`
	// Providers have a bundle that brings what is missing.
	Providers []string `json:"providers,omitempty"`
	// Unprovided is what no catalog brings of it.
	Unprovided []string `json:"unprovided,omitempty"`
	// Dependents are extensions that the choice affects.
	Dependents []string `json:"dependents,omitempty"`
	// Reported is what the controller found in the way behind the choice.
	Reported string `json:"reported,omitempty"`
	// Path has the versions that upgrades go through, from what is installed.
	Path []string `json:"path,omitempty"`
	// Unchecked is what the chosen bundle requires, if there was nothing to hold
	// it against.
	Unchecked []string `json:"unchecked,omitempty"`
	// Signatures are what conditions say of signatures.
	Signatures []string `json:"signatures,omitempty"`
	// Polling reports that the catalog of Resolved is not checked for newer bundles.
	Polling string `json:"polling,omitempty"`
	// MayLookUp says that the templates of a chart may look at the cluster.
	MayLookUp bool `json:"mayLookUp,omitempty"`
	// Unknown is what of the cluster could not be read.
	Unknown []string `json:"unknown,omitempty"`
	// LeftOut are all other bundles: those of catalogs with a high priority first,
	// preferred ones first within one.
	LeftOut []leftOutBundle `json:"leftOut"`

	alsoIn []string
}

type chosenBundle struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Image   string `json:"image"`
	Catalog string `json:"catalog"`
}

type installedBundle struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type leftOutBundle struct {
	Name    string         `json:"name"`
	Version string         `json:"version"`
	Catalog string         `json:"catalog"`
	Reason  resolve.Reason `json:"reason"`
	Detail  string         `json:"detail"`
}

// newAnswer is the answer to a request, of which resolution or err came out.
func newAnswer(request resolve.Request, catalogs []resolve.Catalog, resolution resolve.Resolution, err error) *answer {
	a := &answer{LeftOut: []leftOutBundle{}, alsoIn: resolution.AlsoIn}
	if installed := request.Installed; installed != nil {
		a.Installed = &installedBundle{Name: installed.Name, Version: installed.Version}
	}
	leftOut := resolution.LeftOut
	if err != nil {
		a.Error = err.Error()
		if failure, ok := errors.AsType[*resolve.Error](err); ok {
			a.Explanation, leftOut = failure.Explanation(), failure.LeftOut
		}
	} else {
		a.Resolved = &chosenBundle{
			Name: resolution.Identity.Name, Version: resolution.Identity.Version,
			Image: resolution.Image, Catalog: resolution.Catalog,
		}
		a.Explanation = resolution.Explanation()
		for _, identity := range resolve.Path(request, catalogs) {
			a.Path = append(a.Path, identity.Version)
		}
	}
	for _, left := range leftOut {
		a.LeftOut = append(a.LeftOut, leftOutBundle{
			Name: left.Name, Version: left.Version, Catalog: left.Catalog, Reason: left.Reason, Detail: left.Detail,
		})
	}
	return a
}

// answerOf is the answer for an extension on a cluster.
func answerOf(found controller.Explanation) *answer {
	var resolution resolve.Resolution
	if found.Resolution != nil {
		resolution = *found.Resolution
	}
	a := newAnswer(found.Request, found.Catalogs, resolution, found.Err)
	a.Providers, a.Unprovided = found.Supply.Providers, found.Supply.Gaps
	a.Dependents, a.Unknown, a.Reported = found.Dependents, found.Unknown, found.Reported
	a.MayLookUp, a.Signatures, a.Polling = found.MayLookUp, found.Signatures, found.Polling
	installed := found.Request.Installed
	switch {
	case found.Resolution != nil || found.Err != nil:
	case found.Image != "":
		a.Resolved, a.Image = nil, found.Image
		a.Explanation = fmt.Sprintf("there is nothing to choose: spec.source.bundle names image %s, and which bundle that is, it says itself", found.Image)
	case installed != nil:
		a.Explanation = "there is no catalog to choose from; what is installed is kept"
		a.Resolved = &chosenBundle{Name: installed.Name, Version: installed.Version}
	}
	return a
}

// printText prints the answer and a table of all bundles, newest first.
func (a *answer) printText(to io.Writer) error {
	for _, line := range a.summary() {
		if _, err := fmt.Fprintln(to, cli.Printable(line)); err != nil {
			return err
		}
	}
	rows := a.rows()
	if len(rows) == 0 {
		return nil
	}
	const gap = 3
	table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
	fmt.Fprintln(table, "\nVERSION\tBUNDLE\tCATALOG\tREASON\tDETAIL")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", cli.Printable(row.Version), cli.Printable(row.Name),
			cli.Printable(row.Catalog), row.Reason, cli.Printable(row.Detail))
	}
	return table.Flush()
}

// summary is the answer in a line, and what else there is to know in one each.
func (a *answer) summary() []string {
	var lines []string
	switch {
	case a.Resolved != nil:
		lines = append(lines, cli.Chosen(a.Resolved.Name, a.Resolved.Version, a.Resolved.Catalog, a.Resolved.Image))
	case a.Error != "":
		lines = append(lines, a.Error)
	}
	if a.Explanation != "" {
		lines = append(lines, a.Explanation)
	}
	if len(a.Providers) > 0 {
		lines = append(lines, "what is missing comes with "+shown(a.Providers, ", "))
	}
	lines = append(lines, a.Unprovided...)
	if len(a.Dependents) > 0 {
		lines = append(lines, "others are affected: "+shown(a.Dependents, ", "))
	}
	if len(a.Path) > 1 {
		lines = append(lines, "upgrades go "+shown(a.Path, " -> "))
	}
	if a.Polling != "" {
		lines = append(lines, a.Polling)
	}
	if len(a.Unchecked) > 0 {
		lines = append(lines, "not checked: "+shown(a.Unchecked, ", "))
	}
	if a.MayLookUp {
		lines = append(lines, "templates may look at the cluster, by spec.config.inline.allowLookup: what the chart consists of depends on that too")
	}
	for _, text := range a.Signatures {
		lines = append(lines, "signatures of "+text)
	}
	for _, unknown := range a.Unknown {
		lines = append(lines, "not known: "+unknown)
	}
	if a.Reported != "" {
		lines = append(lines, "the controller reports:")
		for line := range strings.Lines(a.Reported) {
			lines = append(lines, "  "+strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// shown joins the first items of a list.
func shown(items []string, separator string) string {
	const most = 20
	if more := len(items) - most; more > 0 {
		items = append(slices.Clone(items[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(items, separator)
}

// rows are the lines of the table.
func (a *answer) rows() []leftOutBundle {
	var rows []leftOutBundle
	if a.Resolved != nil {
		rows = append(rows, leftOutBundle{
			Name: a.Resolved.Name, Version: a.Resolved.Version, Reason: "CHOSEN", Detail: a.Resolved.Image,
			Catalog: strings.Join(append([]string{a.Resolved.Catalog}, a.alsoIn...), ", "),
		})
	}
	rows = append(rows, a.LeftOut...)
	slices.SortStableFunc(rows, func(a, b leftOutBundle) int { return compareVersions(b.Version, a.Version) })
	return rows
}

// compareVersions has those that are no versions first.
func compareVersions(a, b string) int {
	parsedA, errA := bundle.ParseVersion(a)
	parsedB, errB := bundle.ParseVersion(b)
	switch {
	case errA != nil && errB != nil:
		return 0
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	}
	return parsedA.Compare(parsedB)
}
