package monitoring_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/test/monitoring"
)

// ofTargets are the labels that series have of where they were scraped, besides the
// job.
var ofTargets = []string{"endpoint", "instance", "namespace", "pod", "service"}

// namespace is how the names of our metrics begin.
const namespace = "operator_controller_"

var (
	rowOfMetric = regexp.MustCompile("(?m)^\\| `(" + namespace + "\\w+)` \\| (\\w+) \\| ([^|]*) \\|")
	quoted      = regexp.MustCompile("`(\\w+)`")
)

// checkPage holds the tables of docs/metrics.md against what was scraped: each metric of
// ours with its type and its labels.
func (f *fleet) checkPage(t *testing.T, prometheus *monitoring.Prometheus) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(f.Root(), "docs", "metrics.md"))
	must(t, err)
	told := map[string]string{}
	for _, row := range rowOfMetric.FindAllStringSubmatch(string(page), -1) {
		var labels []string
		for _, label := range quoted.FindAllStringSubmatch(row[3], -1) {
			labels = append(labels, label[1])
		}
		told[row[1]] = row[2] + " " + strings.Join(slices.Sorted(slices.Values(labels)), ",")
	}
	metadata, err := prometheus.Metadata(t.Context(), "", "")
	must(t, err)
	exposed := map[string]string{}
	for name, entries := range metadata {
		if strings.HasPrefix(name, namespace) {
			exposed[name] = string(entries[0].Type) + " " + strings.Join(labelsOf(t, prometheus, name), ",")
		}
	}
	if diff := cmp.Diff(told, exposed); diff != "" {
		t.Errorf("metrics (-docs/metrics.md +exposed):\n%s", diff)
	}
}

// labelsOf are those that a metric has of itself, sorted.
func labelsOf(t *testing.T, prometheus *monitoring.Prometheus, metric string) []string {
	t.Helper()
	series, _, _, err := prometheus.Series(t.Context(), []string{`{__name__=~"` + metric + `(_count)?"}`}, time.Now().Add(-time.Hour), time.Now())
	must(t, err)
	found := map[string]bool{}
	for _, labels := range series {
		for label := range labels {
			found[string(label)] = true
		}
	}
	delete(found, "__name__")
	delete(found, "job")
	for _, ofTarget := range ofTargets {
		delete(found, ofTarget)
	}
	return slices.Sorted(maps.Keys(found))
}
