package catalogserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// seriesOf are all series by name and values of their labels. Of a histogram it is what was
// observed in all.
func seriesOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			key := strings.TrimPrefix(family.GetName(), "operator_controller_catalog_")
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			series[key] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetHistogram().GetSampleSum()
		}
	}
	return series
}

// TestMetricsOfTheServer: each request counts by what it asks for and how it was answered, and
// bytes as they were sent.
func TestMetricsOfTheServer(t *testing.T) {
	t.Parallel()
	store := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	checked := time.Unix(9000, 0)
	files := fstest.MapFS{"catalog.json": {Data: []byte(`{"schema":"olm.package","name":"p"}`)}}
	origin := catalogserver.Origin{Source: "example.com/c:v1", Canonical: "example.com/c@sha256:1", CheckedAt: checked}
	if err := store.Put(t.Context(), "c", origin, files); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	metrics, err := catalogserver.NewMetrics(registry, store)
	if err != nil {
		t.Fatal(err)
	}
	address := start(t, catalogserver.ServerConfig{Handler: catalogserver.Handler(store), Metrics: metrics})
	want := map[string]float64{"last_pull_timestamp_seconds c": float64(checked.Unix())}
	for _, request := range []struct{ method, path, endpoint, code string }{
		{http.MethodGet, "/catalogs/c/api/v1/all", "all", "200"},
		{http.MethodHead, "/catalogs/c/api/v1/all", "all", "200"},
		{http.MethodGet, "/catalogs/c/api/v1/metas?schema=olm.package", "metas", "200"},
		{http.MethodGet, "/catalogs/none/api/v1/all", "all", "404"},
		{http.MethodPost, "/catalogs/c/api/v1/metas", "metas", "405"},
		{http.MethodGet, "/", "other", "404"},
		{"MADE-UP", "/made-up", "other", "404"},
	} {
		asked, err := http.NewRequestWithContext(t.Context(), request.method, fmt.Sprintf("http://%s%s", address, request.path), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		asked.Header.Set("Accept-Encoding", "identity")
		response, err := http.DefaultClient.Do(asked)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		want["server_requests_total "+request.code+" "+request.endpoint]++
		want["server_response_size_bytes "+request.endpoint] += float64(len(body))
	}
	if diff := cmp.Diff(want, seriesOf(t, registry)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if err := store.Delete("c"); err != nil {
		t.Fatal(err)
	}
	delete(want, "last_pull_timestamp_seconds c")
	if diff := cmp.Diff(want, seriesOf(t, registry)); diff != "" {
		t.Errorf("metrics of a catalog that is gone (-want +got):\n%s", diff)
	}
	if _, err := catalogserver.NewMetrics(registry, store); err == nil {
		t.Error("they are registered twice")
	}
}
