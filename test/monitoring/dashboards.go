package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// Dashboard is what the tests look at of a dashboard for Grafana.
type Dashboard struct {
	// File is its name in config/grafana.
	File string `json:"-"`

	UID           string  `json:"uid"`
	Title         string  `json:"title"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []Panel `json:"panels"`

	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Panel is one of a dashboard, or a row, which has no targets.
type Panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Datasource  Datasource   `json:"datasource"`
	Targets     []PanelQuery `json:"targets"`
	GridPos     Area         `json:"gridPos"`
	Description string       `json:"description"`
}

// Area is where a panel is, in columns of which there are 24, and in rows.
type Area struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// PanelQuery is one query of a panel.
type PanelQuery struct {
	Expr       string     `json:"expr"`
	Datasource Datasource `json:"datasource"`
}

// Datasource is where a query goes.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Variable is one that the user of a dashboard can set.
type Variable struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Definition string     `json:"definition"`
	Datasource Datasource `json:"datasource"`
}

// ReadDashboards reads all of config/grafana.
func ReadDashboards() ([]Dashboard, error) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "config", "grafana", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for dashboards: %w", err)
	}
	dashboards := make([]Dashboard, 0, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading dashboard: %w", err)
		}
		dashboard := Dashboard{File: filepath.Base(file)}
		if err := json.Unmarshal(content, &dashboard); err != nil {
			return nil, fmt.Errorf("reading dashboard %s: %w", dashboard.File, err)
		}
		dashboards = append(dashboards, dashboard)
	}
	return dashboards, nil
}

// Query is an expression of PromQL, and where it stands.
type Query struct{ Where, Text string }

// Queries are those of the alerts.
func (m Manifests) Queries() []Query {
	var queries []Query
	for _, alert := range m.Alerts() {
		queries = append(queries, Query{Where: alert.Alert, Text: alert.Expr.String()})
	}
	return queries
}

// Queries are those of all panels, as Grafana sends them for an extension and for whatever
// else there is to select.
func (d Dashboard) Queries(extension string) []Query {
	variables := strings.NewReplacer("$__rate_interval", "5m", "$cluster", ".*", "$job", ".*", "$extension", extension)
	var queries []Query
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, Query{Where: d.File + ": " + panel.Title, Text: variables.Replace(target.Expr)})
		}
	}
	return queries
}
