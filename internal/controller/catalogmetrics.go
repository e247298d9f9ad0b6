package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

const (
	labelCatalog = "catalog"
	labelKind    = "kind"

	// Kinds of problems with the content of a catalog.
	problemContent = "content"
	problemPackage = "package"
)

// CatalogMetrics say how catalogs are doing. Series of a catalog go with it.
type CatalogMetrics struct {
	conditions   *conditionGauges
	content      *prometheus.GaugeVec
	pollInterval *prometheus.GaugeVec
	packages     *prometheus.GaugeVec
	problems     *prometheus.GaugeVec
	signatures   *verdictGauges
}

// NewCatalogMetrics registers the metrics. It fails when they are registered already.
func NewCatalogMetrics(registry prometheus.Registerer) (*CatalogMetrics, error) {
	m := &CatalogMetrics{
		conditions: newConditionGauges("catalog_condition",
			"Conditions of catalogs: 1 for True, 0 for False or absent, -1 for Unknown.", labelCatalog, measuredConditions()),
		content: gauge("catalog_content_timestamp_seconds",
			"When the content was stored that is served.", labelCatalog),
		pollInterval: gauge("catalog_poll_interval_seconds",
			"How often the image is looked at, for catalogs that are polled.", labelCatalog),
		packages: gauge("catalog_packages",
			"Packages in the content that extensions are chosen from.", labelCatalog),
		problems: gauge("catalog_problems",
			"Packages that cannot be used, and 1 while newer content cannot be read.", labelCatalog, labelKind),
		signatures: newVerdictGauges("catalog_image_verdict",
			"What ImagePolicies make of the image of what is served; always 1.", labelCatalog),
	}
	var errs []error
	for _, vector := range m.all() {
		errs = append(errs, registry.Register(vector))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("registering metrics of catalogs: %w", err)
	}
	return m, nil
}

func (m *CatalogMetrics) all() []vector {
	return []vector{m.conditions, m.content, m.pollInterval, m.packages, m.problems, m.signatures}
}

// Reset drops what is told of all catalogs, for when another process acts.
func (m *CatalogMetrics) Reset() {
	for _, vector := range m.all() {
		vector.Reset()
	}
}

// passed is for the end of a pass over a catalog, of which stock is held. Unreadable says that
// what it serves now could not be read, which the status of the catalog does not tell.
func (m *CatalogMetrics) passed(catalog *ocv1.ClusterCatalog, stock CatalogStock, unreadable bool) {
	m.conditions.set(catalog.Name, catalog.Status.Conditions)
	m.signatures.set(catalog.Name, verdictLabelOf(catalog.Status.Conditions))
	setOrDelete(m.content, catalog.Name, unixSeconds(catalog))
	setOrDelete(m.pollInterval, catalog.Name, pollIntervalOf(catalog).Seconds())
	m.packages.WithLabelValues(catalog.Name).Set(float64(stock.Packages))
	m.problems.WithLabelValues(catalog.Name, problemPackage).Set(float64(stock.Malformed))
	content := 0.0
	degraded := meta.FindStatusCondition(catalog.Status.Conditions, ocv1.TypeDegraded)
	if unreadable || degraded != nil && degraded.Status == metav1.ConditionTrue && degraded.Reason == ocv1.ReasonContentInvalid {
		content = 1
	}
	m.problems.WithLabelValues(catalog.Name, problemContent).Set(content)
}

// forget drops the series of a catalog that is gone.
func (m *CatalogMetrics) forget(catalog string) {
	for _, vector := range m.all() {
		vector.DeletePartialMatch(prometheus.Labels{labelCatalog: catalog})
	}
}

// setOrDelete leaves no series where there is no value.
func setOrDelete(metric *prometheus.GaugeVec, label string, value float64) {
	if value == 0 {
		metric.DeleteLabelValues(label)
		return
	}
	metric.WithLabelValues(label).Set(value)
}

// unixSeconds is when the content of a catalog was stored; zero if there is none.
func unixSeconds(catalog *ocv1.ClusterCatalog) float64 {
	if catalog.Status.LastUnpacked == nil {
		return 0
	}
	return float64(catalog.Status.LastUnpacked.Unix())
}

// pollIntervalOf is zero for a catalog that is not polled.
func pollIntervalOf(catalog *ocv1.ClusterCatalog) time.Duration {
	if image := catalog.Spec.Source.Image; image != nil && image.PollIntervalMinutes != nil {
		return time.Duration(*image.PollIntervalMinutes) * time.Minute
	}
	return 0
}

// measuredConditions are those of a catalog of which 0 says that they do not hold. Without
// Verified, nobody has asked for signatures.
func measuredConditions() []string {
	return slices.DeleteFunc(ocv1.ClusterCatalogConditionTypes(), func(kind string) bool { return kind == ocv1.TypeVerified })
}
