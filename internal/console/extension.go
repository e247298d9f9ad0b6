package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// extensionBody is what the page of one extension shows.
type extensionBody struct {
	Row        extensionRow
	Facts      []fact
	Why        Explanation
	Conditions []conditionRow
	Events     []eventRow
	Objects    []branch
	More       int
	Rights     string
	// Graph says whether there is one to draw.
	Graph    bool
	Manifest string
	// Edits are the manifest as it would be after something that a person may decide.
	Edits []edit
}

// fact is a name and what it is.
type fact struct{ Name, Text string }

type conditionRow struct{ Type, Status, Reason, Message, Age, At string }

type eventRow struct {
	Event

	Age string
}

// edit is a manifest as it would be after something that a person may decide.
type edit struct{ Title, Text, Manifest string }

// named is the extension that a request is about; nil if there is none, in which case the
// request is answered.
func (c *console) named(w http.ResponseWriter, r *http.Request) *ocv1.ClusterExtension {
	return sought(c, w, asked[ocv1.ClusterExtension]{
		name: r.PathValue("name"), kind: ocv1.ClusterExtensionKind, section: pageExtensions, nameOf: extensionName,
	}, c.Live.Extensions())
}

func (c *console) extension(w http.ResponseWriter, r *http.Request) {
	ext := c.named(w, r)
	if ext == nil {
		return
	}
	body := extensionBody{
		Row: newExtensionRow(ext, c.newestOf(c.Live.Catalogs().Items, ext)), Facts: factsOf(ext),
		Conditions: conditionRows(ext.Status.Conditions, c.Now()),
	}
	shown := page{Title: ext.Name, Section: pageExtensions}
	c.begin(w, pageExtension, shown)
	ctx := r.Context()
	var situation Situation
	var asked sync.WaitGroup
	asked.Go(func() { situation = c.Asking.Situation(ctx, ext) })
	var err error
	body.Why, err = c.Asking.Explain(ctx, ext)
	body.Graph = c.offering(ctx, ext) != nil
	asked.Wait()
	shown.Missing = append(shown.Missing, missing("why it is this version", err)...)
	body.Why.Choices = body.Why.Choices[:min(len(body.Why.Choices), maxRows)]
	shown.Missing = append(shown.Missing, situation.Unknown...)
	body.Events = eventRows(situation.Events, c.Now())
	body.Objects, body.More = branches(situation.Objects, situation.More)
	body.Rights = situation.Rights
	if body.Manifest, err = manifestOf(ext); err == nil {
		body.Edits, err = editsOf(ext)
	}
	shown.Missing = append(shown.Missing, missing("the manifest", err)...)
	shown.Body = body
	c.finish(w, pageExtension, shown)
}

// factsOf are what an extension is, in short.
func factsOf(ext *ocv1.ClusterExtension) []fact {
	facts := []fact{
		{"Namespace", ext.Spec.Namespace},
		{"ServiceAccount", ext.Spec.ServiceAccount.Name},
	}
	if catalog := ext.Spec.Source.Catalog; catalog != nil {
		facts = append(facts, fact{"Package", catalog.PackageName},
			fact{"Versions", cmp.Or(catalog.Version, "any")},
			fact{"Channels", cmp.Or(strings.Join(catalog.Channels, ", "), "all")},
			fact{"Upgrades", cmp.Or(string(catalog.UpgradeApproval), string(ocv1.UpgradeApprovalAutomatic))})
	}
	if named := ext.Spec.Source.Bundle; named != nil {
		facts = append(facts, fact{"Image", named.Ref})
	}
	if install := ext.Status.Install; install != nil {
		facts = append(facts, fact{"Installed", install.Bundle.Name + ", version " + install.Bundle.Version})
	}
	if pending := ext.Status.Pending; pending != nil {
		facts = append(facts, fact{"Waits for approval", pending.Bundle.Name + ", version " + pending.Bundle.Version},
			fact{"What it would do", cmp.Or(pending.PlanSummary, "not known yet")})
	}
	for i := range facts {
		facts[i].Text = line(facts[i].Text)
	}
	return facts
}

func conditionRows(conditions []metav1.Condition, now time.Time) []conditionRow {
	sorted := slices.SortedFunc(slices.Values(conditions), func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(b.LastTransitionTime.Unix(), a.LastTransitionTime.Unix()), cmp.Compare(a.Type, b.Type))
	})
	var rows []conditionRow
	for _, one := range sorted[:min(len(sorted), maxRows)] {
		rows = append(rows, conditionRow{
			Type: one.Type, Status: string(one.Status), Reason: one.Reason, Message: one.Message,
			Age: age(one.LastTransitionTime.Time, now), At: one.LastTransitionTime.UTC().Format(time.RFC3339),
		})
	}
	return rows
}

// eventRows are the newest first.
func eventRows(events []Event, now time.Time) []eventRow {
	sorted := slices.SortedStableFunc(slices.Values(events), func(a, b Event) int { return b.Last.Compare(a.Last) })
	var rows []eventRow
	for _, one := range sorted[:min(len(sorted), maxRows)] {
		rows = append(rows, eventRow{Event: one, Age: age(one.Last, now)})
	}
	return rows
}

// branch are the objects of an extension that are in one namespace, or in none.
type branch struct {
	Namespace string
	Objects   []leaf
}

type leaf struct {
	Kind, Name string
	Health     health
}

// branches are as many objects as a table has, and how many there are besides.
func branches(objects []overview.Object, more int) ([]branch, int) {
	shown := objects[:min(len(objects), maxRows)]
	var all []branch
	for i, one := range shown {
		if i == 0 || shown[i-1].Namespace != one.Namespace {
			all = append(all, branch{Namespace: line(one.Namespace)})
		}
		at := &all[len(all)-1]
		at.Objects = append(at.Objects, leaf{
			Kind: line(one.Kind), Name: line(one.Name), Health: health{Class: classOf(one.Health), Word: line(string(one.Health)), Detail: line(one.Message)},
		})
	}
	return all, more + len(objects) - len(shown)
}

// classOf is what the style shows a health as.
func classOf(of overview.Health) string {
	switch of {
	case overview.Ready, overview.Present, overview.Done:
		return "good"
	case overview.Missing, overview.Foreign, overview.Stalled, overview.NotReady:
		return "bad"
	case overview.Reconciling, overview.Terminating, overview.Waiting:
		return "busy"
	case overview.Deleted, overview.Suspended:
		return "rest"
	case overview.Unknown:
	}
	return "unknown"
}

// planBody is what the page of a plan shows.
type planBody struct {
	Name    string
	Summary []string
	// Unknown says that there is no plan.
	Unknown bool
	// Lists are parts of the plan that have anything to say.
	Lists   []namedList
	Objects []plannedObject
}

type namedList struct {
	Title string
	Lines []string
}

type plannedObject struct {
	preview.Object

	Lines []diffLine
}

// diffLine is one line of a diff: Sign is +, -, @ or a space.
type diffLine struct{ Sign, Text string }

func (c *console) plan(w http.ResponseWriter, r *http.Request) {
	ext := c.named(w, r)
	if ext == nil {
		return
	}
	shown := page{Title: "Plan for " + ext.Name, Section: pageExtensions}
	c.begin(w, pagePlan, shown)
	made, err := c.Asking.Plan(r.Context(), ext.Name)
	shown.Missing = append(missing("the plan", err), made.Unknown...)
	body := newPlanBody(made)
	if err != nil { // nothing is known
		body = planBody{Unknown: true}
	}
	body.Name = ext.Name
	shown.Body = body
	c.finish(w, pagePlan, shown)
}

func newPlanBody(made preview.Preview) planBody {
	before, after := "nothing", "nothing else"
	if made.Installed != nil {
		before = made.Installed.Name + " " + made.Installed.Version
	}
	if made.Chosen != nil {
		after = fmt.Sprintf("%s %s from catalog %s", made.Chosen.Name, made.Chosen.Version, made.Chosen.Catalog)
		if made.Chosen.Catalog == "" {
			after = fmt.Sprintf("%s %s of image %s", made.Chosen.Name, made.Chosen.Version, made.Chosen.Image)
		}
	}
	body := planBody{Summary: []string{"from " + before + " to " + after, made.Counts.String()}}
	if made.WithoutServer != "" {
		body.Summary = append(body.Summary, made.WithoutServer)
	}
	if text := made.LookupText(); text != "" {
		body.Summary = append(body.Summary, text)
	}
	for _, text := range made.Warnings {
		body.Summary = append(body.Summary, "warning: "+text)
	}
	var images, restarts, waits []string
	for _, change := range made.Images {
		images = append(images, fmt.Sprintf("%s, container %q: %s → %s", change.Workload, change.Container, cmp.Or(change.Before, "none"), cmp.Or(change.After, "none")))
	}
	for _, workload := range made.Restarts {
		restarts = append(restarts, workload.String())
	}
	if made.Waits != "" {
		waits = []string{made.Waits}
	}
	for _, list := range []namedList{
		{"In the way", made.Obstacles},
		{"It would wait for", waits},
		{"Images that change", images},
		{"Workloads whose pods restart", restarts},
		{"Hooks that run before and after", made.Hooks},
		{"Rights that the operator gains", made.Gains},
		{"Rights that the ServiceAccount lacks", made.Missing},
		{"Changes of definitions", made.Notes},
		{"What definitions would break", made.Breaks},
	} {
		if len(list.Lines) > 0 {
			body.Lists = append(body.Lists, list)
		}
	}
	room := maxTextBytes
	for _, object := range made.Objects[:min(len(made.Objects), maxRows)] {
		one := plannedObject{Object: object}
		if room > 0 {
			one.Lines = diffLines(object.Diff[:min(len(object.Diff), room)])
			room -= len(object.Diff)
		}
		body.Objects = append(body.Objects, one)
	}
	return body
}

// diffLines are those of a unified diff, without the names of files.
func diffLines(diff string) []diffLine {
	var lines []diffLine
	for text := range strings.Lines(harmless(diff)) {
		text = strings.TrimSuffix(text, "\n")
		if strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "+++ ") || text == "" {
			continue
		}
		lines = append(lines, diffLine{Sign: text[:1], Text: text})
	}
	return lines
}

// extensionGraph draws the package of an extension.
func (c *console) extensionGraph(w http.ResponseWriter, r *http.Request) {
	ext := c.named(w, r)
	if ext == nil {
		return
	}
	catalog := c.offering(r.Context(), ext)
	if catalog == nil || !c.draw(r.Context(), w, catalog, ext.Spec.Source.Catalog.PackageName, ext) {
		c.problem(w, http.StatusNotFound, pageExtensions, "No catalog that can be read has the package")
	}
}

// offering is the catalog of the highest priority that has the package of an extension; nil if
// none does that can be read.
func (c *console) offering(ctx context.Context, ext *ocv1.ClusterExtension) *ocv1.ClusterCatalog {
	for _, catalog := range eligible(c.Live.Catalogs().Items, ext) {
		packages, err := c.Offers.Summary(ctx, catalog)
		if err == nil && slices.ContainsFunc(packages, func(one catalogsummary.Package) bool { return one.Name == ext.Spec.Source.Catalog.PackageName }) {
			return catalog
		}
	}
	return nil
}

// eligible are the catalogs that are served and that an extension chooses from, those of a high
// priority first.
func eligible(catalogs []*ocv1.ClusterCatalog, ext *ocv1.ClusterExtension) []*ocv1.ClusterCatalog {
	filter := ext.Spec.Source.Catalog
	if filter == nil {
		return nil
	}
	selector := labels.Everything()
	if filter.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(filter.Selector); err != nil {
			return nil
		}
	}
	var found []*ocv1.ClusterCatalog
	for _, catalog := range catalogs {
		if catalog.ServedAt() != "" && selector.Matches(labels.Set(catalog.Labels)) {
			found = append(found, catalog)
		}
	}
	slices.SortStableFunc(found, func(a, b *ocv1.ClusterCatalog) int { return cmp.Compare(b.Spec.Priority, a.Spec.Priority) })
	return found
}

func (c *console) packageGraph(w http.ResponseWriter, r *http.Request) {
	catalog := find(c.Live.Catalogs().Items, r.PathValue("catalog"), catalogName)
	if catalog == nil || !c.draw(r.Context(), w, catalog, r.PathValue("name"), nil) {
		c.problem(w, http.StatusNotFound, pagePackages, "The catalog or the package cannot be read")
	}
}

// draw writes the graph of a package, with the way from the installed version of an
// extension; false if there is no such package.
func (c *console) draw(ctx context.Context, w http.ResponseWriter, catalog *ocv1.ClusterCatalog, name string, ext *ocv1.ClusterExtension) bool {
	offer, err := c.Offers.Package(ctx, catalog, name)
	if err != nil || offer == nil {
		return false
	}
	drawing, err := drawingOf(offer.Resolved, ext)
	if err != nil {
		return false
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", drawing.policy)
	_, _ = w.Write(drawing.data)
	return true
}
