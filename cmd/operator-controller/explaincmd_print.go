package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// explained is the answer of explain, as programs read it.
type explained struct {
	// Resolved is the chosen bundle; absent if there is an Error.
	Resolved *chosenBundle `json:"resolved,omitempty"`
	Error    string        `json:"error,omitempty"`
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

// newExplained is the answer to a request, of which resolution or err came out.
func newExplained(request resolve.Request, catalogs []resolve.Catalog, resolution resolve.Resolution, err error) *explained {
	e := &explained{LeftOut: []leftOutBundle{}, alsoIn: resolution.AlsoIn}
	if installed := request.Installed; installed != nil {
		e.Installed = &installedBundle{Name: installed.Name, Version: installed.Version}
	}
	leftOut := resolution.LeftOut
	if err != nil {
		e.Error = err.Error()
		if failure, ok := errors.AsType[*resolve.Error](err); ok {
			e.Explanation, leftOut = failure.Explanation(), failure.LeftOut
		}
	} else {
		e.Resolved = &chosenBundle{
			Name: resolution.Identity.Name, Version: resolution.Identity.Version,
			Image: resolution.Image, Catalog: resolution.Catalog,
		}
		e.Explanation = resolution.Explanation()
		for _, identity := range resolve.Path(request, catalogs) {
			e.Path = append(e.Path, identity.Version)
		}
	}
	for _, left := range leftOut {
		e.LeftOut = append(e.LeftOut, leftOutBundle{
			Name: left.Name, Version: left.Version, Catalog: left.Catalog, Reason: left.Reason, Detail: left.Detail,
		})
	}
	return e
}

func (e *explained) supply(found resolve.Supply) {
	e.Providers, e.Unprovided = found.Providers, found.Gaps
}

func (e *explained) printJSON(to io.Writer) error {
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(e)
}

// printText prints the answer and a table of all bundles, newest first.
func (e *explained) printText(to io.Writer) error {
	for _, line := range e.summary() {
		if _, err := fmt.Fprintln(to, printable(line)); err != nil {
			return err
		}
	}
	rows := e.rows()
	if len(rows) == 0 {
		return nil
	}
	const gap = 3
	table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
	fmt.Fprintln(table, "\nVERSION\tBUNDLE\tCATALOG\tREASON\tDETAIL")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", printable(row.Version), printable(row.Name),
			printable(row.Catalog), row.Reason, printable(row.Detail))
	}
	return table.Flush()
}

// summary is the answer in a line, and what else there is to know in one each.
func (e *explained) summary() []string {
	lines := []string{e.Error}
	if e.Resolved != nil {
		lines[0] = fmt.Sprintf("%q version %q from catalog %q", e.Resolved.Name, e.Resolved.Version, e.Resolved.Catalog)
	}
	if e.Explanation != "" {
		lines = append(lines, e.Explanation)
	}
	if len(e.Providers) > 0 {
		lines = append(lines, "what is missing comes with "+shown(e.Providers, ", "))
	}
	lines = append(lines, e.Unprovided...)
	if len(e.Dependents) > 0 {
		lines = append(lines, "others are affected: "+shown(e.Dependents, ", "))
	}
	if len(e.Path) > 1 {
		lines = append(lines, "upgrades go "+shown(e.Path, " -> "))
	}
	if len(e.Unchecked) > 0 {
		lines = append(lines, "not checked: "+shown(e.Unchecked, ", "))
	}
	for _, unknown := range e.Unknown {
		lines = append(lines, "not known: "+unknown)
	}
	if e.Reported != "" {
		lines = append(lines, "the controller reports:")
		for line := range strings.Lines(e.Reported) {
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
func (e *explained) rows() []leftOutBundle {
	var rows []leftOutBundle
	if e.Resolved != nil {
		rows = append(rows, leftOutBundle{
			Name: e.Resolved.Name, Version: e.Resolved.Version, Reason: "CHOSEN", Detail: e.Resolved.Image,
			Catalog: strings.Join(append([]string{e.Resolved.Catalog}, e.alsoIn...), ", "),
		})
	}
	rows = append(rows, e.LeftOut...)
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

// printable returns the start of text without what would move the cursor or turn
// writing around: texts of catalogs may come from anybody.
func printable(text string) string {
	const most = 2000
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
