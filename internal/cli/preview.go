package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// Preview says what would become of a request on the cluster. With maskEnv, environment
// variables are masked by their names.
func (c *Cluster) Preview(ctx context.Context, request inspect.Request, maskEnv bool) (preview.Preview, error) {
	cluster, err := c.Inspect(ctx)
	if err != nil {
		return preview.Preview{}, err
	}
	plan, err := cluster.Plan(ctx, request)
	if err != nil {
		return preview.Preview{}, err
	}
	facts, err := cluster.Foresee(ctx, plan)
	if err != nil {
		return preview.Preview{}, err
	}
	facts.MaskEnv = maskEnv
	return preview.Make(facts), nil
}

// PrintPreview prints a preview for people.
func PrintPreview(to io.Writer, made preview.Preview) error {
	for _, line := range previewHeading(made) {
		if _, err := fmt.Fprintln(to, Printable(line)); err != nil {
			return err
		}
	}
	if len(made.Objects) > 0 {
		const gap = 3
		table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
		fmt.Fprintln(table, "\nACTION\tOBJECT\tDETAIL")
		for _, shown := range made.Objects {
			fmt.Fprintf(table, "%s\t%s\t%s\n", shown.Action, Printable(shown.String()), Printable(objectDetail(shown)))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return PrintSections(to, previewSections(made))
}

// PrintDiff prints a preview for people and for patch, which passes over the lines before a diff.
func PrintDiff(to io.Writer, made preview.Preview) error {
	lines := previewHeading(made)
	for _, section := range previewSections(made) {
		if len(section.Lines) > 0 {
			lines = append(append(lines, section.Title), section.Lines...)
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(to, "# "+Printable(line)); err != nil {
			return err
		}
	}
	for _, shown := range made.Objects {
		if text := objectDetail(shown); shown.Problem != "" || shown.Untried != "" {
			fmt.Fprintf(to, "# %s: %s\n", Printable(shown.String()), Printable(text))
		}
		for line := range strings.Lines(shown.Diff) {
			// Texts in YAML have tabs.
			if _, err := fmt.Fprintln(to, excerpt.Printable(strings.TrimSuffix(line, "\n"), "\t")); err != nil {
				return err
			}
		}
	}
	return nil
}

// previewHeading says what it is about, and what it comes to.
func previewHeading(made preview.Preview) []string {
	before, after := "nothing", "nothing else"
	if made.Installed != nil {
		before = fmt.Sprintf("%q", made.Installed.Name)
	}
	if chosen := made.Chosen; chosen != nil {
		after = Chosen(chosen.Name, chosen.Version, chosen.Catalog, chosen.Image)
	}
	lines := []string{fmt.Sprintf("%s: from %s to %s", made.Extension, before, after)}
	if made.WithoutServer != "" {
		lines = append(lines, made.WithoutServer)
	}
	if text := made.LookupText(); text != "" {
		lines = append(lines, text)
	}
	for _, text := range made.Warnings {
		lines = append(lines, "warning: "+text)
	}
	return append(lines, made.Counts.String(), fmt.Sprintf("pods restart: %d", len(made.Restarts)))
}

func objectDetail(shown preview.Object) string {
	var parts []string
	if shown.Problem != "" {
		parts = append(parts, shown.Problem)
	}
	if len(shown.Fields) > 0 {
		text := strings.Join(shown.Fields, ", ")
		if shown.More > 0 {
			text += fmt.Sprintf(" and %d more", shown.More)
		}
		parts = append(parts, text)
	}
	switch shown.Untried {
	case object.UntriedOwn:
		parts = append(parts, "not tried: it depends on other objects of the bundle")
	case object.UntriedInconclusive:
		parts = append(parts, "not tried: a webhook that is called for it has side effects")
	case object.UntriedForbidden:
		parts = append(parts, "not tried: you may not")
	}
	return strings.Join(parts, "; ")
}

// Section is a list below a title.
type Section struct {
	Title string
	Lines []string
}

// PrintSections leaves out those that have no lines.
func PrintSections(to io.Writer, sections []Section) error {
	for _, section := range sections {
		if len(section.Lines) == 0 {
			continue
		}
		fmt.Fprintf(to, "\n%s\n", section.Title)
		for _, line := range section.Lines {
			if _, err := fmt.Fprintln(to, "  "+Printable(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

func previewSections(made preview.Preview) []Section {
	var images, restarts, waits []string
	for _, change := range made.Images {
		images = append(images, fmt.Sprintf("%s, container %q: %s -> %s", change.Workload, change.Container, orNone(change.Before), orNone(change.After)))
	}
	for _, workload := range made.Restarts {
		restarts = append(restarts, workload.String())
	}
	if made.Waits != "" {
		waits = []string{made.Waits}
	}
	return []Section{
		{"images that change:", images},
		{"workloads whose pods restart:", restarts},
		{"hooks that run before and after:", made.Hooks},
		{"rights that the operator gains:", made.Gains},
		{"rights that the ServiceAccount lacks:", made.Missing},
		{"changes of definitions:", made.Notes},
		{"what definitions would break:", made.Breaks},
		{"it would wait for:", waits},
		{"not known:", made.Unknown},
		{"in the way:", made.Obstacles},
	}
}

func orNone(image string) string {
	if image == "" {
		return "none"
	}
	return image
}
