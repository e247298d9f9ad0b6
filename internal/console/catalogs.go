package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/packagecard"
)

// catalogRow is one catalog.
type catalogRow struct {
	Name   string
	Health health
	// Served says whether its content can be had, and since when.
	Served   string
	Image    string
	Digest   string
	Priority int32
	// Signed is what ImagePolicies make of the image; without a word if none is about it.
	Signed health
	// Packages is how many there are; negative if it is not known.
	Packages int
	Problem  string
	// Conditions are all that is said of it.
	Conditions []conditionRow
}

func newCatalogRow(catalog *ocv1.ClusterCatalog, now time.Time) catalogRow {
	row := catalogRow{
		Name: line(catalog.Name), Priority: catalog.Spec.Priority, Packages: -1,
		Health: healthOf(catalog.Status.Conditions, overview.Lifecycle{
			IsCurrent: catalog.Status.ObservedGeneration >= catalog.Generation,
			Deleting:  !catalog.DeletionTimestamp.IsZero(),
			Suspended: catalog.Spec.AvailabilityMode == ocv1.AvailabilityModeUnavailable,
		}),
		Served:     "no",
		Conditions: conditionRows(catalog.Status.Conditions, now),
	}
	if serving := condition(catalog.Status.Conditions, ocv1.TypeServing); serving.Status == metav1.ConditionTrue {
		row.Served = "yes, for " + age(serving.LastTransitionTime.Time, now)
		if at := catalog.Status.LastUnpacked; at != nil {
			row.Served += "; this content for " + age(at.Time, now)
		}
	}
	if image := catalog.Spec.Source.Image; image != nil {
		row.Image = line(image.Ref)
	}
	if source := catalog.Status.ResolvedSource; source != nil && source.Image != nil {
		_, digest, _ := strings.Cut(source.Image.Ref, "@")
		row.Digest = line(digest)
	}
	if degraded := condition(catalog.Status.Conditions, ocv1.TypeDegraded); degraded.Status == metav1.ConditionTrue && row.Health.Class == "good" {
		row.Health = health{Class: "bad", Word: "Degraded, " + line(degraded.Reason), Detail: line(degraded.Message)}
	}
	row.Signed = signedOf(catalog.Status.Conditions)
	if progressing := condition(catalog.Status.Conditions, ocv1.TypeProgressing); progressing.Reason != "" && progressing.Reason != ocv1.ReasonSucceeded {
		row.Problem = line(progressing.Message)
	}
	return row
}

// signedOf is what the condition on signatures says of a catalog.
func signedOf(conditions []metav1.Condition) health {
	verified := condition(conditions, ocv1.TypeVerified)
	class := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "good", metav1.ConditionFalse: "bad"}[verified.Status]
	return health{Class: cmp.Or(class, "unknown"), Word: line(verified.Reason), Detail: line(verified.Message)}
}

// summary is what could be read of a catalog.
type summary struct {
	catalog  *ocv1.ClusterCatalog
	packages []catalogsummary.Package
	err      error
}

// summaries reads all catalogs that are served, those with a high priority first.
func (c *console) summaries(ctx context.Context) []summary {
	catalogs := slices.SortedStableFunc(slices.Values(c.Live.Catalogs().Items), func(a, b *ocv1.ClusterCatalog) int {
		return cmp.Compare(b.Spec.Priority, a.Spec.Priority)
	})
	found := make([]summary, len(catalogs))
	var group sync.WaitGroup
	for i, catalog := range catalogs {
		found[i] = summary{catalog: catalog, err: errors.New("it is not served")}
		if catalog.ServedAt() != "" {
			group.Go(func() { found[i].packages, found[i].err = c.Offers.Summary(ctx, catalog) })
		}
	}
	group.Wait()
	return found
}

func (c *console) catalogs(w http.ResponseWriter, r *http.Request) {
	seen := c.Live.Catalogs()
	shown := page{Title: "Catalogs", Section: pageCatalogs, Missing: missing("ClusterCatalogs", seen.Err)}
	var rows []catalogRow
	for _, one := range c.summaries(r.Context()) {
		row := newCatalogRow(one.catalog, c.Now())
		if one.err == nil {
			row.Packages = len(one.packages)
		} else if one.catalog.ServedAt() != "" {
			shown.Missing = append(shown.Missing, missing("packages of catalog "+one.catalog.Name, one.err)...)
		}
		rows = append(rows, row)
	}
	shown.Body = rows[:min(len(rows), maxRows)]
	c.show(w, pageCatalogs, http.StatusOK, shown)
}

// cardView is one package of one catalog.
type cardView struct {
	catalogsummary.Package

	Catalog string
	Search  string

	// Path is that of its page. The name of a package is opaque, and must lead nowhere else.
	Path string
}

func newCardView(catalog string, from catalogsummary.Package) cardView {
	words := append([]string{from.Name, from.DisplayName, from.Provider, from.Description, catalog}, from.Keywords...)
	return cardView{
		Package: from, Catalog: catalog, Search: strings.ToLower(line(strings.Join(words, " "))), Path: packagePath(catalog, from.Name),
	}
}

// packagePath is that of the page of a package.
func packagePath(catalog, name string) string {
	return "/packages/" + url.PathEscape(catalog) + "/" + url.PathEscape(name)
}

// packagesBody is what the page of all packages shows.
type packagesBody struct {
	Cards  []cardView
	All    int
	Filter string
}

func (c *console) packages(w http.ResponseWriter, r *http.Request) {
	filter := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))
	shown := page{Title: "Packages", Section: pagePackages, Missing: missing("ClusterCatalogs", c.Live.Catalogs().Err)}
	body := packagesBody{Filter: line(filter)}
	for _, one := range c.summaries(r.Context()) {
		shown.Missing = append(shown.Missing, missing("packages of catalog "+one.catalog.Name, one.err)...)
		for _, from := range one.packages {
			body.All++
			if view := newCardView(one.catalog.Name, from); matches(view.Search, filter) && len(body.Cards) < maxRows {
				body.Cards = append(body.Cards, view)
			}
		}
	}
	slices.SortStableFunc(body.Cards, func(a, b cardView) int { return cmp.Compare(a.Name, b.Name) })
	shown.Body = body
	c.show(w, pagePackages, http.StatusOK, shown)
}

// iconPolicy keeps a drawing from doing anything, also where it is opened as a page of its
// own: no script, no request, an origin that is nobody's.
const iconPolicy = "default-src 'none'; sandbox"

// icon sends an icon as an image, and as nothing else: where there is none, a letter.
func (c *console) icon(w http.ResponseWriter, r *http.Request) {
	if destination := r.Header.Get("Sec-Fetch-Dest"); destination != "" && destination != "image" {
		http.Error(w, "an icon is an image", http.StatusForbidden)
		return
	}
	catalog := find(c.Live.Catalogs().Items, r.PathValue("catalog"), catalogName)
	if catalog == nil {
		http.Error(w, "there is no such catalog", http.StatusNotFound)
		return
	}
	name := r.PathValue("name")
	icon, err := c.Offers.Icon(r.Context(), catalog, name)
	if err != nil || icon == nil {
		icon = letterOf(name)
	}
	w.Header().Set("Content-Type", icon.MediaType)
	w.Header().Set("Content-Security-Policy", iconPolicy)
	if err == nil {
		w.Header().Set("Cache-Control", "private, max-age=600")
	}
	_, _ = w.Write(icon.Data)
}

// letterOf is what stands in the place of an icon: a page knows of none before it has asked.
func letterOf(name string) *packagecard.Icon {
	letter := "?"
	for _, first := range line(name) {
		letter = strings.ToUpper(string(first))
		break
	}
	return &packagecard.Icon{MediaType: "image/svg+xml", Data: fmt.Appendf(nil,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><text x="24" y="33" font-family="sans-serif" font-size="26" font-weight="700" text-anchor="middle" fill="#57606a">%s</text></svg>`,
		html.EscapeString(letter))}
}
