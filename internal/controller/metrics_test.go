package controller

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// gather gives the series of metrics by name and labels, of those whose names
// have one of the prefixes: gauges and counters with their value, histograms with
// how much they have observed.
func gather(t *testing.T, registry *prometheus.Registry, prefixes ...string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		name := strings.TrimPrefix(family.GetName(), "operator_controller_")
		for _, metric := range family.GetMetric() {
			labels := make([]string, 0, len(metric.GetLabel()))
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			key := name + " " + strings.Join(labels, ",")
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			for _, prefix := range prefixes {
				if strings.HasPrefix(key, prefix) {
					series[key] = value
				}
			}
		}
	}
	return series
}

// secondsOf is how long a stage took in all passes.
func secondsOf(t *testing.T, registry *prometheus.Registry, stage Stage) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "stage" && label.GetValue() == string(stage) {
					sum += metric.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return sum
}

func TestMetricsOfAnExtension(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.repair = installation.Result{Changes: changesTo(keyOf("ConfigMap", "", "a"), keyOf("ConfigMap", "", "b"), keyOf("ConfigMap", "", "c")), ReleaseBytes: 1234}
	w.repair.Warnings, w.repair.CertificatesEnd = []string{"deprecated", "unknown field"}, time.Unix(7000, 0)
	w.mustReconcile(t)
	want := map[string]float64{
		"extension_installed_info x,1.0.0":                     1,
		"extension_passes_total x,settled,":                    2,
		"extension_repairs_total x":                            3,
		"extension_operations_total x,install":                 1,
		"extension_operations_total x,upgrade":                 0,
		"extension_warnings_total x":                           2,
		"extension_approval_pending x":                         0,
		"extension_certificate_expiration_timestamp_seconds x": 7000,
		"extension_release_bytes x":                            1234,
		"extension_condition x,Ready":                          1,
		"extension_condition x,Installed":                      1,
		"extension_condition x,Stalled":                        0,
		"extension_condition x,Reconciling":                    0,
		"extension_condition x,Deprecated":                     0,
		"stage_duration_seconds observe":                       2,
		"stage_duration_seconds resolve":                       2,
		"stage_duration_seconds fetch":                         1,
		"stage_duration_seconds render":                        1,
		"stage_duration_seconds apply":                         1,
		"stage_duration_seconds repair":                        1,
	}
	got := gather(t, w.registry, "extension_operations", "extension_warnings", "extension_approval", "extension_upgrade", "extension_certificate",
		"extension_installed", "extension_passes", "extension_repairs", "extension_release", "extension_condition x,Ready",
		"extension_condition x,Installed", "extension_condition x,Stalled", "extension_condition x,Reconciling",
		"extension_condition x,Deprecated", "stage_")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("at rest (-want +got):\n%s", diff)
	}

	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	w.fetchErr = errors.New("boom")
	w.repair = installation.Result{} // which failed, too, and does not know
	if _, err := w.reconcile(t); err == nil {
		t.Fatal("want the error of the fetch")
	}
	want = map[string]float64{
		"extension_installed_info x,1.0.0":     1,
		"extension_passes_total x,settled,":    2,
		"extension_passes_total x,retry,fetch": 1,
		"extension_release_bytes x":            1234,
		"extension_condition x,Ready":          0,
		"extension_condition x,Reconciling":    1,
	}
	got = gather(t, w.registry, "extension_installed", "extension_passes", "extension_release", "extension_condition x,Ready", "extension_condition x,Reconciling")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("while the registry is down (-want +got):\n%s", diff)
	}

	w.fetchErr = nil
	w.mustReconcile(t)
	want = map[string]float64{
		"extension_installed_info x,1.1.0":                     1,
		"extension_operations_total x,install":                 1,
		"extension_operations_total x,upgrade":                 1,
		"extension_certificate_expiration_timestamp_seconds x": 7000, // as long as nothing else is known
	}
	if diff := cmp.Diff(want, gather(t, w.registry, "extension_installed", "extension_operations", "extension_certificate")); diff != "" {
		t.Errorf("after an upgrade (-want +got):\n%s", diff)
	}
}

// TestMetricsOfSignatures: there is one series at most, for what holds.
func TestMetricsOfSignatures(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.judged = map[string]imagepolicy.Verdict{}
	for _, step := range []struct {
		verdict imagepolicy.Verdict
		err     error
		want    string // empty for no series
	}{
		{},
		{verdict: imagepolicy.Verdict{Policies: []string{"p"}, Signers: []string{"s"}}, want: "accepted"},
		{verdict: imagepolicy.Verdict{Policies: []string{"p"}, Refusals: []string{"r"}}, want: "warned"},
		{verdict: imagepolicy.Verdict{Policies: []string{"p"}, Refusals: []string{"r"}, Refused: true}, want: "refused"},
		{err: errors.New("no answer"), want: "unknown"},
		{},
	} {
		w.judged["sha256:registry.test/p:v1.0.0"], w.judgeErr = step.verdict, step.err
		w.mustReconcile(t)
		want := map[string]float64{}
		if step.want != "" {
			want["extension_image_verdict x,"+step.want] = 1
		}
		if diff := cmp.Diff(want, gather(t, w.registry, "extension_image_verdict")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", step, diff)
		}
	}
}

func TestMetricsGoWithTheExtension(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	if got := gather(t, w.registry, "extension_"); len(got) == 0 {
		t.Fatal("there are no metrics to go")
	}
	if err := w.client.Delete(t.Context(), w.extension(t)); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(t)
	if got := gather(t, w.registry, "extension_"); len(got) > 0 {
		t.Errorf("left of an extension that is gone: %v", got)
	}
}

// TestMetricsAreFew bounds what each extension adds, whatever happens to it.
func TestMetricsAreFew(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []Disposition{Settled, Retry, Wait, Blocked}
	stages := []Stage{"", StageValidate, StageObserve, StageResolve, StageFetch, StageRender, StageApply, StageRepair}
	for i := range 100 {
		v := verdict{disposition: outcomes[i%len(outcomes)], message: fmt.Sprint("message ", i), reason: fmt.Sprint("Reason", i)}
		outcome := Outcome{Err: errors.New(v.message), Stage: stages[i%len(stages)], Installed: installed(fmt.Sprintf("1.%d.0", i)), ReleaseBytes: 1 + i}
		metrics.worked("x", outcome)
		metrics.passed("x", outcome, v, statusOf(extension(), outcome, v, phase{}, time.Unix(1000, 0)))
	}
	conditions := len(ocv1.ClusterExtensionConditionTypes()) + len(ocv1.ClusterExtensionPassingConditionTypes())
	if got, most := len(gather(t, registry, "extension_")), 8+conditions+len(outcomes)*len(stages); got > most {
		t.Errorf("%d series of one extension, want at most %d", got, most)
	}
	if got := len(gather(t, registry, "extension_installed")); got != 1 {
		t.Errorf("%d versions, want 1", got)
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	if _, err := NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	_, err := NewMetrics(registry)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); !ok {
		t.Errorf("err = %v (%v), want that they are there already", err, registered)
	}
}

// Who acts no more tells nothing of extensions, and counts anew when it acts again.
func TestMetricsEndWithLeadership(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	tell := func() {
		outcome := Outcome{Installed: installed("1.0.0"), ReleaseBytes: 1}
		metrics.worked("x", outcome)
		metrics.passed("x", outcome, verdict{disposition: Settled}, statusOf(extension(), outcome, verdict{}, phase{}, time.Unix(1000, 0)))
	}
	tell()
	before := gather(t, registry, "extension_")
	metrics.Reset()
	if got := gather(t, registry, "extension_"); len(got) > 0 {
		t.Errorf("left of those who act no more: %v", got)
	}
	tell()
	if diff := cmp.Diff(before, gather(t, registry, "extension_")); diff != "" || len(before) == 0 {
		t.Errorf("of who acts again (-want +got):\n%s", diff)
	}
}

// metricsOfAFleet are those of a process with so many extensions, each of which was
// installed, has waited, failed in two ways, and was repaired; and with a catalog for every
// hundred of them.
func metricsOfAFleet(tb testing.TB, extensions int) *prometheus.Registry {
	tb.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m, err := NewMetrics(registry)
	if err != nil {
		tb.Fatal(err)
	}
	catalogs, err := NewCatalogMetrics(registry)
	if err != nil {
		tb.Fatal(err)
	}
	installed := &ocv1.ClusterExtensionStatus{Install: &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Version: "1.0.0"}}}
	for i := range extensions {
		name := fmt.Sprintf("extension-%04d", i)
		for _, pass := range []struct {
			stage       Stage
			disposition Disposition
		}{{StageFetch, Wait}, {StageApply, Retry}, {StageResolve, Blocked}, {"", Settled}} {
			outcome := Outcome{Stage: pass.stage, ReleaseBytes: 10_000}
			outcome.CertificatesEnd = time.Unix(7000, 0)
			m.worked(name, outcome)
			m.passed(name, outcome, verdict{disposition: pass.disposition}, installed)
		}
		if i%100 == 0 {
			catalog := &ocv1.ClusterCatalog{}
			catalog.Name = fmt.Sprintf("catalog-%02d", i/100)
			catalogs.passed(catalog, CatalogStock{Packages: 300}, false)
		}
	}
	for _, stage := range []Stage{StageObserve, StageResolve, StageFetch, StageRender, StageApply, StageRepair} {
		m.took(stage, time.Second)
	}
	return registry
}

// seriesOf counts the series that Prometheus has of a registry.
func seriesOf(tb testing.TB, registry *prometheus.Registry) int {
	tb.Helper()
	families, err := registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	count := 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch {
			case metric.GetHistogram() != nil:
				count += len(metric.GetHistogram().GetBucket()) + 3 // the last bucket, the sum and the count
			case metric.GetSummary() != nil:
				count += len(metric.GetSummary().GetQuantile()) + 2
			default:
				count++
			}
		}
	}
	return count
}

// What is besides is of controller-runtime and the catalog server, and some hundred series
// however many extensions there are.
func TestSeriesOfAThousandExtensions(t *testing.T) {
	t.Parallel()
	const limit, besides = 25_000, 1_000
	if got := seriesOf(t, metricsOfAFleet(t, 1000)); got > limit-besides {
		t.Errorf("%d series, want fewer than %d", got, limit-besides)
	} else {
		t.Log(got, "series")
	}
}

// BenchmarkScrape is what Prometheus makes of a process with 1,000 extensions, but for TLS
// and for asking who it is.
func BenchmarkScrape(b *testing.B) {
	registry := metricsOfAFleet(b, 1000)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4")
	request.Header.Set("Accept-Encoding", "gzip")
	for b.Loop() {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		b.ReportMetric(float64(recorder.Body.Len()), "B/scrape")
	}
	b.ReportMetric(float64(seriesOf(b, registry)), "series")
}
