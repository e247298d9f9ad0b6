package monitoring_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/monitoring"
	"github.com/clusterextensions/operator-controller/test/programs"
)

// runbooks is where the pages of alerts are read.
const runbooks = "https://github.com/clusterextensions/operator-controller/blob/main/docs/alerts/"

// tools returns the programs that watch a cluster.
func tools(t *testing.T) *programs.Monitoring {
	t.Helper()
	binaries, err := programs.BuildMonitoring(t.Context(), os.Stderr)
	must(t, err)
	return binaries
}

func manifests(t *testing.T) monitoring.Manifests {
	t.Helper()
	read, err := monitoring.ReadManifests()
	must(t, err)
	return read
}

func rulesFile(t *testing.T) []byte {
	t.Helper()
	content, err := manifests(t).RulesFile()
	must(t, err)
	return content
}

// TestRules has promtool check the rules and carry out their tests.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool, folder := tools(t).Promtool, t.TempDir()
	tests, err := os.ReadFile("testdata/alerts.yaml")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "rules.yaml"), rulesFile(t), 0o600))
	must(t, os.WriteFile(filepath.Join(folder, "alerts.yaml"), tests, 0o600))
	for _, arguments := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"},
		{"test", "rules", "alerts.yaml"},
	} {
		command := exec.CommandContext(t.Context(), promtool, arguments...)
		command.Dir = folder
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
	}
}

// Each alert fires in a test, is silent in that before its time, and is silent in a
// healthy fleet.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/alerts.yaml")
	must(t, err)
	var file struct {
		Tests []struct {
			Name  string `json:"name"`
			Cases []struct {
				Alert  string `json:"alertname"`
				Expect []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	must(t, yaml.Unmarshal(content, &file))
	tested := map[string][]string{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			kind := "fires"
			if len(c.Expect) == 0 {
				kind = "is silent"
			}
			if test.Name == "a healthy fleet" {
				kind += " in a healthy fleet"
			}
			tested[c.Alert] = append(tested[c.Alert], kind)
		}
	}
	for _, alert := range manifests(t).Alerts() {
		want := []string{"fires", "is silent in a healthy fleet"}
		if *alert.For != "0m" {
			want = append(want, "is silent")
		}
		for _, kind := range want {
			if !slices.Contains(tested[alert.Alert], kind) {
				t.Errorf("no test in which %s %s", alert.Alert, kind)
			}
		}
	}
}

// TestConventionsOfAlerts holds alerts against how others write theirs, by which people
// and tools find their way: https://monitoring.mixins.dev.
func TestConventionsOfAlerts(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^OperatorController([A-Z][a-z]+)+$`)
	for _, alert := range manifests(t).Alerts() {
		if !name.MatchString(alert.Alert) {
			t.Errorf("name %q", alert.Alert)
		}
		if severity := alert.Labels["severity"]; len(alert.Labels) != 1 || !slices.Contains([]string{"critical", "warning", "info"}, severity) {
			t.Errorf("%s has labels %v, want a severity and no other", alert.Alert, alert.Labels)
		}
		if summary := alert.Annotations["summary"]; summary == "" || strings.Contains(summary, "{{") || strings.Contains(summary, "\n") {
			t.Errorf("%s has summary %q, want one line that is the same for all", alert.Alert, summary)
		}
		if alert.Annotations["description"] == "" {
			t.Errorf("%s has no description", alert.Alert)
		}
		if got, want := alert.Annotations["runbook_url"], runbooks+alert.Alert+".md"; got != want {
			t.Errorf("%s has runbook %q, want %q", alert.Alert, got, want)
		}
	}
}

// Each alert has a page that says what it means, what to look at and what to do, and that
// shows its expression as it is; each page is of an alert.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	root, err := testkit.ModuleRoot()
	must(t, err)
	files, err := filepath.Glob(filepath.Join(root, "docs", "alerts", "*.md"))
	must(t, err)
	var pages, alerts []string
	for _, file := range files {
		pages = append(pages, strings.TrimSuffix(filepath.Base(file), ".md"))
	}
	for _, alert := range manifests(t).Alerts() {
		alerts = append(alerts, alert.Alert)
		page, err := os.ReadFile(filepath.Join(root, "docs", "alerts", alert.Alert+".md"))
		if err != nil {
			continue // is told below
		}
		for _, want := range wantOfPage(alert) {
			if !bytes.Contains(page, []byte(want)) {
				t.Errorf("the page of %s lacks %q", alert.Alert, want)
			}
		}
	}
	slices.Sort(alerts)
	if diff := cmp.Diff(alerts, pages); diff != "" {
		t.Errorf("pages (-alerts +pages):\n%s", diff)
	}
	index, err := os.ReadFile(filepath.Join(root, "docs", "monitor-a-fleet.md"))
	must(t, err)
	for _, alert := range manifests(t).Alerts() {
		row := fmt.Sprintf("| [%[1]s](alerts/%[1]s.md) | %[2]s |", alert.Alert, alert.Labels["severity"])
		if !bytes.Contains(index, []byte(row)) {
			t.Errorf("docs/monitor-a-fleet.md lacks %q", row)
		}
	}
}

func wantOfPage(alert monitoringv1.Rule) []string {
	wait := "at once"
	if *alert.For != "0m" {
		wait = "for " + string(*alert.For)
	}
	return []string{
		"# " + alert.Alert + "\n", "\n## What it means\n", "\n## What to look at\n", "\n## What to do\n",
		"```promql\n" + alert.Expr.String() + "\n```", "Severity `" + alert.Labels["severity"] + "`, " + wait + ".",
	}
}

// The rules and all queries of dashboards are understood by Prometheus. That there are such
// series is for a test with a controller.
func TestPrometheusUnderstandsAllQueries(t *testing.T) {
	t.Parallel()
	prometheus, err := monitoring.Start(t.Context(), monitoring.Options{
		Program: tools(t).Prometheus, Folder: t.TempDir(), Rules: rulesFile(t), Interval: time.Minute,
	})
	must(t, err)
	t.Cleanup(prometheus.Stop)
	queries := manifests(t).Queries()
	for _, dashboard := range dashboards(t) {
		queries = append(queries, dashboard.Queries("x")...)
	}
	for _, query := range queries {
		expression, err := prometheus.Parse(t.Context(), query.Text)
		if err != nil {
			t.Errorf("%s: %v", query.Where, err)
		} else if len(expression.Selectors) == 0 {
			t.Errorf("%s asks for no metric: %s", query.Where, query.Text)
		}
	}
	if _, err := prometheus.Parse(t.Context(), "sum("); err == nil {
		t.Error("half a query was understood")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
