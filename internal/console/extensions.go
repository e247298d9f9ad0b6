package console

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/overview"
)

// health is how an object is, in one word, and why.
type health struct {
	// Class is what the style shows it as: good, busy, bad, rest or unknown.
	Class, Word, Detail string
}

// healthOf has the health of the command line as a class, and as a word the controller's reason
// where there is one.
func healthOf(conditions []metav1.Condition, at overview.Lifecycle) health {
	found, message := overview.HealthOf(conditions, at)
	shown := health{Class: classOf(found), Word: string(found), Detail: line(message)}
	reason := line(condition(conditions, ocv1.TypeReady).Reason)
	switch found {
	case overview.Stalled:
		shown.Word = cmp.Or(line(condition(conditions, ocv1.TypeStalled).Reason), shown.Word)
	case overview.Reconciling, overview.NotReady, overview.Unknown:
		shown.Word = cmp.Or(reason, shown.Word)
	case overview.Ready:
		if reason != "" && reason != ocv1.ReasonSucceeded {
			shown.Word += ", " + reason
		}
	case overview.Terminating, overview.Deleted, overview.Waiting, overview.Suspended, overview.Present, overview.Missing, overview.Foreign, overview.Done:
	}
	return shown
}

// extensionRow is one extension in the table.
type extensionRow struct {
	Name, Package, Namespace string
	Health                   health
	Version                  string
	// Newer is the newest version in its channels, if that is above the installed one.
	Newer string
	// Pending is what waits for an approval.
	Pending string
	// Deprecated is what the catalog says against it; empty for nothing.
	Deprecated string
	// Search is what the filter looks at.
	Search string
}

// newExtensionRow makes a row. Newest is the newest version that catalogs have of it.
func newExtensionRow(ext *ocv1.ClusterExtension, newest string) extensionRow {
	row := extensionRow{
		Name: line(ext.Name), Package: line(ext.Package()), Namespace: line(ext.Spec.Namespace),
		Health: healthOf(ext.Status.Conditions, overview.LifecycleOf(ext)),
	}
	if install := ext.Status.Install; install != nil {
		row.Version = line(install.Bundle.Version)
		if newest != "" && bundle.CompareVersions(newest, install.Bundle.Version) > 0 {
			row.Newer = line(newest)
		}
	}
	if pending := ext.Status.Pending; pending != nil {
		row.Pending = line(pending.Bundle.Version)
	}
	if deprecated := condition(ext.Status.Conditions, ocv1.TypeDeprecated); deprecated.Status == metav1.ConditionTrue {
		row.Deprecated = line(cmp.Or(deprecated.Message, "deprecated"))
	}
	asListed, _ := overview.HealthOf(ext.Status.Conditions, overview.LifecycleOf(ext))
	words := []string{row.Name, row.Package, row.Namespace, row.Version, row.Health.Word, row.Health.Class, string(asListed)}
	for word, is := range map[string]bool{"pending": row.Pending != "", "deprecated": row.Deprecated != "", "newer": row.Newer != ""} {
		if is {
			words = append(words, word)
		}
	}
	row.Search = strings.ToLower(strings.Join(words, " "))
	return row
}

// newestOf is the newest version that the packages that were read have for an extension, in
// its channels; empty if none has any.
func (c *console) newestOf(catalogs []*ocv1.ClusterCatalog, ext *ocv1.ClusterExtension) string {
	newest := ""
	for _, catalog := range eligible(catalogs, ext) {
		for channel, version := range c.Offers.Newest(catalog, ext.Spec.Source.Catalog.PackageName) {
			if inChannels(ext.Spec.Source.Catalog.Channels, channel) && bundle.CompareVersions(version, newest) > 0 {
				newest = version
			}
		}
	}
	return newest
}

func inChannels(channels []string, channel string) bool {
	return len(channels) == 0 || slices.Contains(channels, channel)
}

// extensionsBody is what the page of all extensions shows.
type extensionsBody struct {
	Rows []extensionRow
	All  int
	// Filter is what somebody without scripts has filtered by.
	Filter string
	News   uint64
}

func (c *console) extensions(w http.ResponseWriter, r *http.Request) {
	news, _ := c.Live.News()
	seen := c.Live.Extensions()
	filter := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))
	body := extensionsBody{All: len(seen.Items), Filter: line(filter), News: news}
	for _, row := range c.rows(seen.Items) {
		if matches(row.Search, filter) {
			body.Rows = append(body.Rows, row)
		}
	}
	shown := page{Title: "Extensions", Section: pageExtensions, Missing: missing("ClusterExtensions", seen.Err), Body: body}
	shown.Missing = append(shown.Missing, missing("ClusterCatalogs, which say which versions there are", c.Live.Catalogs().Err)...)
	if len(seen.Items) > maxRows {
		shown.Missing = append(shown.Missing, fmt.Sprintf("%d more extensions are not shown", len(seen.Items)-maxRows))
	}
	c.show(w, pageExtensions, http.StatusOK, shown)
}

// rows are as many as a table has.
func (c *console) rows(items []*ocv1.ClusterExtension) []extensionRow {
	catalogs := c.Live.Catalogs().Items
	var rows []extensionRow
	for _, ext := range items[:min(len(items), maxRows)] {
		rows = append(rows, newExtensionRow(ext, c.newestOf(catalogs, ext)))
	}
	return rows
}

// matches wants every word.
func matches(text, filter string) bool {
	for word := range strings.FieldsSeq(filter) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// rowHTML is one row of the table.
func (c *console) rowHTML(row extensionRow) (string, error) {
	var out bytes.Buffer
	err := c.pages[pageExtensions].ExecuteTemplate(&out, "extension-row", row)
	return out.String(), err
}
