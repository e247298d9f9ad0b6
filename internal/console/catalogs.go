package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
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
	// Packages is how many there are; negative if it is not known.
	Packages int
	Problem  string
	// Conditions are all that is said of it.
	Conditions []conditionRow
}

func newCatalogRow(catalog *ocv1.ClusterCatalog, now time.Time) catalogRow {
	row := catalogRow{
		Name: line(catalog.Name), Priority: catalog.Spec.Priority, Packages: -1,
		Health: healthOf(catalog.Status.Conditions, catalog.Generation, catalog.Status.ObservedGeneration,
			catalog.Spec.AvailabilityMode == ocv1.AvailabilityModeUnavailable, !catalog.DeletionTimestamp.IsZero()),
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
	if progressing := condition(catalog.Status.Conditions, ocv1.TypeProgressing); progressing.Reason != "" && progressing.Reason != ocv1.ReasonSucceeded {
		row.Problem = line(progressing.Message)
	}
	return row
}

// isServed says that the content can be had.
func isServed(catalog *ocv1.ClusterCatalog) bool {
	return catalog.Status.URLs != nil && catalog.Status.ResolvedSource != nil &&
		catalog.Spec.AvailabilityMode != ocv1.AvailabilityModeUnavailable
}

// shelf is what could be read of a catalog.
type shelf struct {
	catalog *ocv1.ClusterCatalog
	cards   []packagecard.Card
	err     error
}

// shelves reads all catalogs that are served, those with a high priority first.
func (c *console) shelves(ctx context.Context) []shelf {
	catalogs := slices.SortedStableFunc(slices.Values(c.Live.Catalogs().Items), func(a, b *ocv1.ClusterCatalog) int {
		return cmp.Compare(b.Spec.Priority, a.Spec.Priority)
	})
	found := make([]shelf, len(catalogs))
	var group sync.WaitGroup
	for i, catalog := range catalogs {
		found[i] = shelf{catalog: catalog, err: errors.New("it is not served")}
		if isServed(catalog) {
			group.Go(func() { found[i].cards, found[i].err = c.Offers.Shelf(ctx, catalog) })
		}
	}
	group.Wait()
	return found
}

func (c *console) catalogs(w http.ResponseWriter, r *http.Request) {
	seen := c.Live.Catalogs()
	shown := page{Title: "Catalogs", Section: pageCatalogs, Missing: missing("ClusterCatalogs", seen.Err)}
	var rows []catalogRow
	for _, one := range c.shelves(r.Context()) {
		row := newCatalogRow(one.catalog, c.Now())
		if one.err == nil {
			row.Packages = len(one.cards)
		} else if isServed(one.catalog) {
			shown.Missing = append(shown.Missing, missing("packages of catalog "+one.catalog.Name, one.err)...)
		}
		rows = append(rows, row)
	}
	shown.Body = rows[:min(len(rows), maxRows)]
	c.show(w, pageCatalogs, http.StatusOK, shown)
}

// cardView is one package of one catalog.
type cardView struct {
	packagecard.Card

	Catalog string
	Letter  string
	Search  string
}

func newCardView(catalog string, card packagecard.Card) cardView {
	view := cardView{Card: card, Catalog: catalog, Letter: "?"}
	for _, first := range line(cmp.Or(card.Title, card.Package)) {
		view.Letter = strings.ToUpper(string(first))
		break
	}
	view.Search = strings.ToLower(line(strings.Join(append([]string{card.Package, card.Title, card.Provider, card.Summary, catalog}, card.Keywords...), " ")))
	return view
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
	for _, one := range c.shelves(r.Context()) {
		shown.Missing = append(shown.Missing, missing("packages of catalog "+one.catalog.Name, one.err)...)
		for _, card := range one.cards {
			body.All++
			if view := newCardView(one.catalog.Name, card); matches(view.Search, filter) && len(body.Cards) < maxRows {
				body.Cards = append(body.Cards, view)
			}
		}
	}
	slices.SortStableFunc(body.Cards, func(a, b cardView) int { return cmp.Compare(a.Package, b.Package) })
	shown.Body = body
	c.show(w, pagePackages, http.StatusOK, shown)
}

// iconPolicy keeps a drawing from doing anything, also where it is opened as a page of its
// own: no script, no request, an origin that is nobody's.
const iconPolicy = "default-src 'none'; sandbox"

// icon sends an icon as an image, and as nothing else.
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
	for _, card := range c.Offers.Known(catalog) {
		if card.Package == r.PathValue("name") && card.Icon != nil {
			w.Header().Set("Content-Type", card.Icon.MediaType)
			w.Header().Set("Content-Security-Policy", iconPolicy)
			w.Header().Set("Cache-Control", "private, max-age=600")
			_, _ = w.Write(card.Icon.Data)
			return
		}
	}
	http.Error(w, "there is no icon", http.StatusNotFound)
}
