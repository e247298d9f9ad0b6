package crd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

// kindWords are the kinds of findings for people.
var kindWords = map[crdupgrade.Kind]string{
	crdupgrade.Blocks: "blocks", crdupgrade.NeedsData: "needs data", crdupgrade.Note: "note",
}

// report is what is printed for programs.
type report struct {
	Findings []crdupgrade.Finding `json:"findings"`
	// StoredObjects are lines about those that the upgrade would break.
	StoredObjects []string `json:"storedObjects,omitempty"`
}

// print prints each finding, the objects that break, and for each check what to do; or
// all as one object.
func (o *check) print(to io.Writer, found preflight.Verdict) error {
	if o.output.String() != cli.Text {
		report := report{Findings: found.Findings, StoredObjects: found.Offenders}
		if report.Findings == nil {
			report.Findings = []crdupgrade.Finding{}
		}
		return cli.Print(to, o.output, report)
	}
	var lines []string
	for _, finding := range found.Findings {
		lines = append(lines, line(finding))
	}
	return cli.PrintLines(to, slices.Concat(lines, found.Offenders, advice(found.Findings)))
}

// advice is what to do about each check that found something, after an empty
// line.
func advice(found []crdupgrade.Finding) []string {
	var lines []string
	for _, finding := range found {
		line := finding.Check + ": " + finding.Advice
		if len(lines) == 0 {
			lines = append(lines, "", "What to do:")
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

func line(f crdupgrade.Finding) string {
	parts := []string{f.CRD, kindWords[f.Kind]}
	for _, part := range []string{f.Version, f.Path} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, f.Check, f.Detail), ": ")
}

// verdict returns an error if the controller would stop, or might, and otherwise tells
// people how many notes there are.
func verdict(to io.Writer, found []crdupgrade.Finding) error {
	count := map[crdupgrade.Kind]int{}
	for _, finding := range found {
		count[finding.Kind]++
	}
	text := fmt.Sprintf("%d blocking, %d dependent on stored objects, %s",
		count[crdupgrade.Blocks], count[crdupgrade.NeedsData], cli.Counted(count[crdupgrade.Note], "note"))
	if count[crdupgrade.Blocks]+count[crdupgrade.NeedsData] > 0 {
		return errors.New(text)
	}
	fmt.Fprintln(to, text)
	return nil
}
