package preview

import (
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Summarize says in one line what an operation would do: how many objects, which of them, and
// what somebody wants to know who has to agree to it. It has no content of objects.
func Summarize(facts Facts) string {
	made := assemble(facts, func(*object.Trial, int) string { return "" })
	parts := []string{made.Counts.String()}
	for _, part := range []struct {
		what  string
		items []string
		limit int
	}{
		{"", textsOf(made.Objects, func(o Object) string { return string(o.Action) + " " + o.String() }), maxNamedBytes},
		{"the pods restart of ", textsOf(made.Restarts, object.Reference.String), maxPartBytes},
		{"hooks run, ", made.Hooks, maxPartBytes},
		{"images: ", textsOf(made.Images, ImageChange.String), maxPartBytes},
		{"the operator gains ", made.Gains, maxPartBytes},
		{"it would break: ", made.Breaks, maxPartBytes},
		{"it would not go through: ", made.Obstacles, maxPartBytes},
		{"not known: ", made.Unknown, maxPartBytes},
	} {
		if len(part.items) > 0 {
			parts = append(parts, part.what+excerpt.Of(part.items, part.limit))
		}
	}
	return excerpt.Line(strings.Join(parts, "; "), maxSummaryBytes)
}

func textsOf[T any](items []T, text func(T) string) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return texts
}

// String says which image takes the place of which: an image that is named by its digest in both
// is told apart by no more than its end.
func (c ImageChange) String() string {
	parts := slices.DeleteFunc([]string{c.Before, c.After}, func(image string) bool { return image == "" })
	return c.Container + " of " + c.Workload.String() + ": " + strings.Join(parts, " -> ")
}
