// Package charts_test renders Helm charts with package helmchart and with Helm, and compares the results.
// It renders the charts in testdata and real charts, with their default values and with variations.
//
// To render one variation of one chart again:
//
//	go test -C test ./charts -run 'TestRealCharts/vault-0.34.1$' -seed=17
package charts_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/helmchart"
)

var (
	variations = flag.Int("variations", 0, "number of variations of the values of each chart; 0 for a few, and without real charts")
	onlySeed   = flag.Int("seed", -1, "the only variation to render; 0 for the default values")
)

const (
	// fewVariations is the number of variations without the flag.
	fewVariations = 3

	// maxFailures is the number of variations that a chart may fail with before its test ends.
	maxFailures = 3
)

func TestMain(m *testing.M) {
	helmchart.Serve()
	flag.Parse()
	log.SetOutput(io.Discard) // Helm warns about values
	os.Exit(m.Run())
}

// TestOwnCharts renders the charts in testdata and in the test data of the engine, and charts with unusual bytes.
func TestOwnCharts(t *testing.T) {
	t.Parallel()
	renderAll(t, ownCharts(t), cmp.Or(*variations, fewVariations))
}

// TestRealCharts renders charts of public repositories.
func TestRealCharts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	renderAll(t, realCharts(t), *variations)
}

// skipShort skips a test of real charts without the flags of this package.
func skipShort(t *testing.T) {
	t.Helper()
	if *variations == 0 && *onlySeed < 0 {
		t.Skip("takes minutes; make test-long SUITE=charts runs it")
	}
}

func renderAll(t *testing.T, charts []packaged, count int) {
	t.Helper()
	for _, chart := range charts {
		t.Run(chart.name, func(t *testing.T) {
			t.Parallel()
			renderVariations(t, chart, count)
		})
	}
}

// renderVariations renders a chart with its default values and with count variations of them.
func renderVariations(t *testing.T, chart packaged, count int) {
	t.Helper()
	defaults := chart.defaults()
	if len(defaults) == 0 {
		count = min(count, fewVariations)
	}
	renderer := newOurs(t, chart)
	results, failures := map[string]int{}, 0
	for _, seed := range seeds(count) {
		at := situationOf(seed, chart)
		values, err := json.Marshal(variation(chart, defaults, seed))
		if err != nil {
			t.Fatal(err)
		}
		summary, differences := compare(t, chart, renderer, at, values)
		results[summary]++
		if seed == 0 && summary == refused && !strings.HasPrefix(chart.name, "version-") {
			t.Errorf("the chart is refused with its default values: %v", renderer.render(t, at, values).refusal)
		}
		if len(differences) == 0 {
			continue
		}
		t.Errorf("seed %d, %s, values %s\n%s\nTo repeat it: go test -C test ./charts -run '%s$' -seed=%d",
			seed, at, values, strings.Join(differences, "\n"), regexp.QuoteMeta(t.Name()), seed)
		if failures++; failures == maxFailures {
			break
		}
	}
	t.Log(tally(results))
}

// seeds returns the seeds of the default values and of count variations, or the one of the flag.
func seeds(count int) []int {
	if *onlySeed >= 0 {
		return []int{*onlySeed}
	}
	found := make([]int, count+1)
	for i := range found {
		found[i] = i
	}
	return found
}

// tally returns how many variations had each result.
func tally(results map[string]int) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(results)) {
		texts = append(texts, fmt.Sprintf("%d %s", results[name], name))
	}
	return strings.Join(texts, ", ")
}
