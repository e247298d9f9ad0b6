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
)

// health is how an object is, in one word, and why.
type health struct {
	// Class is what the style shows it as: good, busy, bad, rest or unknown.
	Class, Word, Detail string
}

// healthOf goes by what the controller says of an object in the conditions that kstatus
// knows. An object that it has not looked at yet is busy.
func healthOf(conditions []metav1.Condition, generation, observed int64, suspended, deleted bool) health {
	ready, stalled := condition(conditions, ocv1.TypeReady), condition(conditions, ocv1.TypeStalled)
	detail := line(ready.Message)
	switch {
	case deleted:
		return health{"busy", "Being deleted", detail}
	case suspended:
		return health{"rest", "Suspended", detail}
	case ready.Status == "" || observed != generation:
		return health{"busy", "Waiting", "the controller has not looked at it yet"}
	case stalled.Status == metav1.ConditionTrue:
		return health{"bad", cmp.Or(line(stalled.Reason), "Stalled"), line(cmp.Or(stalled.Message, ready.Message))}
	case ready.Status == metav1.ConditionTrue && ready.Reason == ocv1.ReasonSucceeded:
		return health{"good", "Ready", detail}
	case ready.Status == metav1.ConditionTrue:
		return health{"good", "Ready, " + line(ready.Reason), detail}
	case ready.Status == metav1.ConditionFalse:
		return health{"bad", cmp.Or(line(ready.Reason), "Not ready"), detail}
	}
	return health{"busy", cmp.Or(line(ready.Reason), "Busy"), detail}
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
		Name: line(ext.Name), Namespace: line(ext.Spec.Namespace),
		Health: healthOf(ext.Status.Conditions, ext.Generation, ext.Status.ObservedGeneration, ext.Spec.Suspend, !ext.DeletionTimestamp.IsZero()),
	}
	if catalog := ext.Spec.Source.Catalog; catalog != nil {
		row.Package = line(catalog.PackageName)
	}
	if install := ext.Status.Install; install != nil {
		row.Version = line(install.Bundle.Version)
		if isNewer(newest, install.Bundle.Version) {
			row.Newer = line(newest)
		}
	}
	if pending := ext.Status.Pending; pending != nil {
		row.Pending = line(pending.Bundle.Version)
	}
	if deprecated := condition(ext.Status.Conditions, ocv1.TypeDeprecated); deprecated.Status == metav1.ConditionTrue {
		row.Deprecated = line(cmp.Or(deprecated.Message, "deprecated"))
	}
	words := []string{row.Name, row.Package, row.Namespace, row.Version, row.Health.Word, row.Health.Class}
	for word, is := range map[string]bool{"pending": row.Pending != "", "deprecated": row.Deprecated != "", "upgrade": row.Newer != ""} {
		if is {
			words = append(words, word)
		}
	}
	row.Search = strings.ToLower(strings.Join(words, " "))
	return row
}

func isNewer(text, than string) bool {
	version, err := bundle.ParseVersion(text)
	other, otherErr := bundle.ParseVersion(than)
	return err == nil && otherErr == nil && version.Compare(other) > 0
}

// newestOf is the newest version that the packages that were read have for an extension, in
// its channels; empty if none has any.
func (c *console) newestOf(catalogs []*ocv1.ClusterCatalog, ext *ocv1.ClusterExtension) string {
	if ext.Spec.Source.Catalog == nil {
		return ""
	}
	newest := ""
	for _, catalog := range catalogs {
		for channel, version := range c.Offers.Newest(catalog, ext.Spec.Source.Catalog.PackageName) {
			if inChannels(ext.Spec.Source.Catalog.Channels, channel) && (newest == "" || isNewer(version, newest)) {
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
	shown.Missing = append(shown.Missing, missing("ClusterCatalogs, which say what there is to upgrade to", c.Live.Catalogs().Err)...)
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
