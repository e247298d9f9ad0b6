package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

// kindWords are the kinds of findings for people.
var kindWords = map[crdupgrade.Kind]string{
	crdupgrade.Blocks: "blocks", crdupgrade.NeedsData: "needs data", crdupgrade.Note: "note",
}

// upgradeReport is what is printed for programs.
type upgradeReport struct {
	Findings []crdupgrade.Finding `json:"findings"`
	// StoredObjects are lines about those that the upgrade would break.
	StoredObjects []string `json:"storedObjects,omitempty"`
}

// printUpgrade prints each finding, the objects that break, and for each check
// what to do; or all as one object.
func printUpgrade(to io.Writer, output string, found preflight.Verdict) error {
	if output == outputJSON {
		report := upgradeReport{Findings: found.Findings, StoredObjects: found.Offenders}
		if report.Findings == nil {
			report.Findings = []crdupgrade.Finding{}
		}
		return printJSON(to, report)
	}
	var lines []string
	for _, finding := range found.Findings {
		lines = append(lines, findingLine(finding))
	}
	lines = append(lines, found.Offenders...)
	lines = append(lines, advice(found.Findings)...)
	for _, line := range lines {
		if _, err := fmt.Fprintln(to, line); err != nil {
			return err
		}
	}
	return nil
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

func findingLine(f crdupgrade.Finding) string {
	parts := []string{f.CRD, kindWords[f.Kind]}
	for _, part := range []string{f.Version, f.Path} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, f.Check, f.Detail), ": ")
}

// upgradeVerdict returns an error if the controller would stop, or might, and
// otherwise tells people how many notes there are.
func upgradeVerdict(to io.Writer, found []crdupgrade.Finding) error {
	count := map[crdupgrade.Kind]int{}
	for _, finding := range found {
		count[finding.Kind]++
	}
	text := fmt.Sprintf("%d blocking, %d dependent on stored objects, %s",
		count[crdupgrade.Blocks], count[crdupgrade.NeedsData], counted(count[crdupgrade.Note], "note"))
	if count[crdupgrade.Blocks]+count[crdupgrade.NeedsData] > 0 {
		return errors.New(text)
	}
	fmt.Fprintln(to, text)
	return nil
}
