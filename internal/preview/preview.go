package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// SchemaVersion is that of the form that programs read. It changes when a program that
// reads the one before would go wrong.
const SchemaVersion = 1

// Facts are what a preview is made from. All but the owner may be empty.
type Facts struct {
	// Owner is the extension.
	Owner object.Owner

	// Asked is the version that whoever asks has named; empty for the choice of the spec.
	Asked string

	// Installed and Chosen are the bundles before and after.
	Installed, Chosen *Bundle

	// Trials are those of all objects, also of those that stay as they are.
	Trials []object.Trial

	// Conflicts are the groups of API services that others serve.
	Conflicts []object.Conflict

	// NoAccount says that the ServiceAccount does not exist.
	NoAccount bool

	// Missing are the rights that the ServiceAccount lacks.
	Missing []permission.Rule

	// Gains are the rights that the operator would get.
	Gains []permission.Gain

	// Hooks of a Helm chart that is chosen. IsInstalled says that it is what is installed, so that
	// no operation comes of it, and Progress is how far the hooks have come that are due of it;
	// nil for none.
	Hooks       []hook.Hook
	IsInstalled bool
	Progress    *hook.Progress

	// DependsOnCluster says that templates of a chart have looked at the cluster, as whoever asks.
	DependsOnCluster bool

	// LooksInVain says that they have called lookup, and that the spec does not let them.
	LooksInVain bool

	// Warnings block nothing; a line each.
	Warnings []string

	// Verdict is what the definitions would break.
	Verdict preflight.Verdict

	// Waits says for what the operation would wait that is nobody's mistake, such as an
	// approval; empty for nothing.
	Waits string

	// Obstacles are what speaks against the operation besides all that, a line each.
	Obstacles []string

	// Unknown is what could not be found out, a line each.
	Unknown []string

	// MaskEnv has the values of environment variables masked whose names tell of secrets.
	MaskEnv bool
}

// Preview is what an operation would do. Lists are sorted and bounded; the last line of one
// that was cut says how much is missing.
type Preview struct {
	SchemaVersion int     `json:"schemaVersion"`
	Extension     string  `json:"extension"`
	Installed     *Bundle `json:"installed,omitempty"`
	Chosen        *Bundle `json:"chosen,omitempty"`

	// Counts are how many objects there are of each action, also of those that are not
	// listed.
	Counts Counts `json:"counts"`

	// Objects are those to which anything would be done, or to which it cannot be done.
	Objects []Object `json:"objects"`

	// Images are those of containers that change.
	Images []ImageChange `json:"images,omitempty"`

	// Restarts are the workloads whose pods are replaced by others.
	Restarts []object.Reference `json:"restarts,omitempty"`

	// Missing are rights that the ServiceAccount lacks.
	Missing []string `json:"missingRights,omitempty"`

	// Gains are rights that the operator would get.
	Gains []string `json:"gainedRights,omitempty"`

	// Hooks of a Helm chart that would run, in their order, with the event of each.
	Hooks []string `json:"hooks,omitempty"`

	// DependsOnCluster says that templates of a chart have looked at the cluster, as the caller. The
	// ServiceAccount may find something else, and so may anybody later.
	DependsOnCluster bool `json:"dependsOnCluster,omitempty"`

	// LooksInVain says that templates have called lookup, which finds nothing as the spec does not
	// let it.
	LooksInVain bool `json:"looksInVain,omitempty"`

	// Warnings block nothing.
	Warnings []string `json:"warnings,omitempty"`

	// Breaks are changes of definitions because of which the operation is refused, and the
	// stored objects that they would break.
	Breaks []string `json:"breaks,omitempty"`

	// Notes are changes of definitions that are worth knowing and stop nothing.
	Notes []string `json:"notes,omitempty"`

	// Waits says for what the operation would wait, such as an approval.
	Waits string `json:"waits,omitempty"`

	// Obstacles say why the operation would not go through, one for each cause. There is
	// none for an operation that would.
	Obstacles []string `json:"obstacles,omitempty"`

	// WithoutServer says what the API server was not asked, because the caller may not.
	WithoutServer string `json:"withoutServer,omitempty"`

	// Unknown is what could not be found out.
	Unknown []string `json:"unknown,omitempty"`
}

// LookupText says of a chart that templates have looked at the cluster, or wanted to; empty if they
// have not.
func (p Preview) LookupText() string {
	switch {
	case p.DependsOnCluster:
		return "the chart has looked at the cluster, as you: as the ServiceAccount, or later, it may find something else"
	case p.LooksInVain:
		return bundle.LookupsRefusedText
	}
	return ""
}

// Bundle is one version of a package.
type Bundle struct {
	Name    string `json:"name"`
	Version string `json:"version"`

	// Image and Catalog are empty where they are not known.
	Image   string `json:"image,omitempty"`
	Catalog string `json:"catalog,omitempty"`
}

// Counts are numbers of objects by what would be done to them.
type Counts struct {
	Create    int `json:"create"`
	Change    int `json:"change"`
	Replace   int `json:"replace"`
	Adopt     int `json:"adopt"`
	Delete    int `json:"delete"`
	Release   int `json:"release,omitempty"`
	Conflict  int `json:"conflict"`
	Unchanged int `json:"unchanged"`
}

func (c Counts) all() int {
	return c.Create + c.Change + c.Replace + c.Adopt + c.Delete + c.Release + c.Conflict + c.Unchanged
}

// String lists the numbers, without those that are zero: 2 to create, 1 to change.
func (c Counts) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{c.Create, "to create"},
		{c.Change, "to change"},
		{c.Replace, "to replace"},
		{c.Adopt, "to adopt"},
		{c.Delete, "to delete"},
		{c.Release, "to release"},
		{c.Conflict, "of others"},
		{c.Unchanged, "unchanged"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	if len(parts) == 0 {
		return "no objects"
	}
	return strings.Join(parts, ", ")
}

func (c *Counts) add(action Action) {
	switch action {
	case Create:
		c.Create++
	case Change:
		c.Change++
	case Replace:
		c.Replace++
	case Adopt:
		c.Adopt++
	case Delete:
		c.Delete++
	case Release:
		c.Release++
	case Conflict:
		c.Conflict++
	case Keep:
		c.Unchanged++
	}
}

// Make makes a preview.
func Make(facts Facts) Preview {
	return assemble(facts, func(trial *object.Trial, room int) string { return diffWithin(trial, facts.MaskEnv, room) })
}

// assemble makes a preview whose diffs have so many bytes of room.
func assemble(facts Facts, diff func(trial *object.Trial, room int) string) Preview {
	made := Preview{
		SchemaVersion: SchemaVersion,
		Extension:     facts.Owner.Name,
		Installed:     facts.Installed,
		Chosen:        facts.Chosen,
		Objects:       []Object{},
		Missing:       lines(facts.Missing, permission.Rule.Text),
		Gains:         lines(facts.Gains, permission.Gain.String),
		Hooks:         lines(textsOf(DueHooks(facts), HookRun.String), asIs),
		Notes:         lines(facts.Verdict.Notes(), findingText),
		Waits:         excerpt.Line(waitsOf(facts), maxLineBytes),
		WithoutServer: withoutServer(facts.Trials),
		Unknown:       lines(facts.Unknown, asIs),

		DependsOnCluster: facts.DependsOnCluster,
		LooksInVain:      facts.LooksInVain,
		Warnings:         lines(facts.Warnings, asIs),
	}
	made.addObjects(facts, diff)
	made.addBreaks(facts.Verdict)
	made.Obstacles = made.obstacles(facts)
	return made
}

// addObjects adds all trials that come to anything.
func (p *Preview) addObjects(facts Facts, diff func(*object.Trial, int) string) {
	trials := slices.SortedFunc(slices.Values(facts.Trials), func(a, b object.Trial) int { return a.Key.Compare(b.Key) })
	room := maxDiffsBytes
	for i := range trials {
		action := actionOf(&trials[i])
		p.Counts.add(action)
		if action == Keep && trials[i].Err == nil || len(p.Objects) == maxObjects {
			continue
		}
		shown := objectOf(&trials[i], action, facts.MaskEnv)
		shown.Diff = diff(&trials[i], room)
		room -= len(shown.Diff)
		p.Objects = append(p.Objects, shown)
	}
	p.Images, p.Restarts = firstOf(imagesOf(trials)), firstOf(RestartsOf(trials))
	if all := p.Counts.all() - p.Counts.Unchanged; all > len(p.Objects) {
		p.Unknown = append(p.Unknown, fmt.Sprintf("%d more objects are not listed", all-len(p.Objects)))
	}
}

// addBreaks leaves aside what the caller may not read: it is not known then whether anything
// would break.
func (p *Preview) addBreaks(verdict preflight.Verdict) {
	blocking := lines(verdict.Blocking(), findingText)
	switch {
	case len(blocking) == 0:
	case verdict.Unread:
		p.Unknown = bounded(slices.Concat(p.Unknown, blocking, lines(verdict.Offenders, asIs)))
	default:
		p.Breaks = bounded(slices.Concat(blocking, lines(verdict.Offenders, asIs)))
	}
}

// obstacles are one line for each cause, in the order in which an operation comes upon them.
func (p *Preview) obstacles(facts Facts) []string {
	found := slices.Clone(facts.Obstacles)
	if facts.NoAccount {
		found = append(found, fmt.Sprintf("ServiceAccount %q does not exist in namespace %q", facts.Owner.ServiceAccount, facts.Owner.Namespace))
	}
	if due := dueHook(facts); due != nil && facts.Progress.FailedAt != nil {
		found = append(found, fmt.Sprintf("the %s hook %s has failed: %s; %s", due.Event, due.key(), facts.Progress.Why, facts.Progress.Remedy(due.Hook)))
	}
	if n := len(facts.Missing); n > 0 {
		found = append(found, fmt.Sprintf("ServiceAccount %q in namespace %q lacks %s: `kubectl extension bundle rbac clusterextension/%s%s` prints what it takes",
			facts.Owner.ServiceAccount, facts.Owner.Namespace, counted(n, "right"), facts.Owner.Name, versionFlag(facts.Asked)))
	}
	if conflict := facts.Conflict(); conflict != nil {
		found = append(found, conflict.Summary())
	}
	if len(p.Breaks) > 0 {
		found = append(found, counted(len(facts.Verdict.Blocking()), "change")+" of definitions would break what is stored, or would be refused")
	}
	for i := range facts.Trials {
		if problem := problemOf(&facts.Trials[i], facts.MaskEnv); problem != "" {
			found = append(found, facts.Trials[i].Key.String()+": "+problem)
		}
	}
	return lines(found, asIs)
}

// versionFlag is that of a command about a version that somebody has named.
func versionFlag(asked string) string {
	if asked == "" {
		return ""
	}
	return " --version '" + asked + "'"
}

// Conflict is nil if no object belongs to somebody else.
func (f Facts) Conflict() *object.ConflictError {
	conflicts := slices.Clone(f.Conflicts)
	for i := range f.Trials {
		if holder := f.Trials[i].Holder; holder != nil {
			conflicts = append(conflicts, object.Conflict{Object: f.Trials[i].Key, Holder: *holder})
		}
	}
	if len(conflicts) == 0 {
		return nil
	}
	slices.SortFunc(conflicts, func(a, b object.Conflict) int { return a.Object.Compare(b.Object) })
	return &object.ConflictError{Claimant: f.Owner, Conflicts: conflicts}
}

// withoutServer says for how many objects it is only computed here what becomes of them.
func withoutServer(trials []object.Trial) string {
	forbidden, unread, guessedAbsent := 0, 0, 0
	for i := range trials {
		if trials[i].Untried == object.UntriedForbidden {
			forbidden++
		}
		switch {
		case trials[i].Unread && trials[i].Change == object.Created:
			guessedAbsent++
		case trials[i].Unread:
			unread++
		}
	}
	var parts []string
	if forbidden > 0 {
		parts = append(parts, fmt.Sprintf("you may not write %s, and what would become of %s is computed here", counted(forbidden, "object"), plural(forbidden, "it", "them")))
	}
	if unread > 0 {
		parts = append(parts, fmt.Sprintf("you may not read %s, which %s taken to be as %s installed",
			counted(unread, "object"), plural(unread, "is", "are"), plural(unread, "it was", "they were")))
	}
	if guessedAbsent > 0 {
		parts = append(parts, fmt.Sprintf("you may not read %s, which %s taken not to be there, as none of that name is known to be installed",
			counted(guessedAbsent, "object"), plural(guessedAbsent, "is", "are")))
	}
	if len(parts) == 0 {
		return ""
	}
	return "without the server: " + strings.Join(parts, "; ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func counted(n int, word string) string {
	return fmt.Sprintf("%d %s", n, plural(n, word, word+"s"))
}

func asIs(text string) string { return text }

func findingText(finding crdupgrade.Finding) string {
	if finding.Advice == "" {
		return finding.String()
	}
	return finding.String() + "; " + finding.Advice
}

// lines has each item in a line, as many as there may be.
func lines[T any](items []T, text func(T) string) []string {
	found := make([]string, 0, min(len(items), maxLines))
	for i, item := range items {
		if i+1 == maxLines && len(items) > maxLines {
			return append(found, fmt.Sprintf("... and %d more", len(items)-i))
		}
		found = append(found, excerpt.Line(text(item), maxLineBytes))
	}
	return found
}

// firstOf are as many as there may be objects.
func firstOf[T any](items []T) []T { return items[:min(len(items), maxObjects)] }

func bounded(items []string) []string { return lines(items, asIs) }
