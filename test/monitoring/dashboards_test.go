package monitoring_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/test/monitoring"
)

// theSource is the variable for where data comes from.
var theSource = monitoring.Datasource{Type: "prometheus", UID: "${datasource}"}

var variableNames = regexp.MustCompile(`\$\{?(\w+)`)

func dashboards(t *testing.T) []monitoring.Dashboard {
	t.Helper()
	read, err := monitoring.ReadDashboards()
	must(t, err)
	if len(read) != 2 {
		t.Fatalf("%d dashboards, want one for a fleet and one for an extension", len(read))
	}
	return read
}

// A dashboard is imported without editing: where data comes from is a variable, and so is
// all that differs from one cluster to the next.
func TestDashboardsCanBeImported(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, dashboard := range dashboards(t) {
		if want := "operator-controller-" + strings.TrimSuffix(dashboard.File, ".json"); dashboard.UID != want || seen[want] {
			t.Errorf("%s has uid %q, want %q", dashboard.File, dashboard.UID, want)
		}
		seen[dashboard.UID] = true
		if dashboard.Title == "" || dashboard.SchemaVersion < 39 {
			t.Errorf("%s has title %q and schema version %d", dashboard.File, dashboard.Title, dashboard.SchemaVersion)
		}
		checkVariables(t, dashboard)
		checkPanels(t, dashboard)
	}
}

func checkVariables(t *testing.T, dashboard monitoring.Dashboard) {
	t.Helper()
	known := map[string]bool{"__rate_interval": true, "__value": true, "__url_time_range": true}
	for i, variable := range dashboard.Templating.List {
		known[variable.Name] = true
		if isSource := variable.Name == "datasource" && variable.Type == "datasource"; isSource != (i == 0) {
			t.Errorf("%s: variable %q comes as number %d: where data comes from is the first", dashboard.File, variable.Name, i)
		}
		if i > 0 && variable.Datasource != theSource {
			t.Errorf("%s: variable %q is read from %v", dashboard.File, variable.Name, variable.Datasource)
		}
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, name := range variableNames.FindAllStringSubmatch(target.Expr, -1) {
				if !known[name[1]] {
					t.Errorf("%s: %s asks for variable %q, which there is not", dashboard.File, panel.Title, name[1])
				}
			}
		}
	}
}

func checkPanels(t *testing.T, dashboard monitoring.Dashboard) {
	t.Helper()
	ids, places := map[int]bool{}, map[string]string{}
	for _, panel := range dashboard.Panels {
		if panel.Title == "" || ids[panel.ID] {
			t.Errorf("%s: panel %d has title %q, or shares its number", dashboard.File, panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				place := fmt.Sprint(x, ",", y)
				if other := places[place]; other != "" || x >= 24 {
					t.Fatalf("%s: %q is where %q is, or beyond the edge", dashboard.File, panel.Title, other)
				}
				places[place] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		if len(panel.Targets) == 0 || panel.Datasource != theSource {
			t.Errorf("%s: %q has %d queries, of %v", dashboard.File, panel.Title, len(panel.Targets), panel.Datasource)
		}
		for _, target := range panel.Targets {
			if target.Datasource != theSource {
				t.Errorf("%s: %q is read from %v", dashboard.File, panel.Title, target.Datasource)
			}
		}
	}
}
