package catalogserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const metricsNamespace = "operator_controller"

// Metrics are about the requests of clients of the network, also of those that are refused,
// and about when the source of each catalog was last looked at. What this process reads
// itself does not count.
type Metrics struct {
	requests *prometheus.CounterVec
	sizes    *prometheus.HistogramVec
}

// labelHandler says what was asked for. Scrapers have a label endpoint themselves.
const labelHandler = "handler"

// endpoints are the values of labelHandler, with how the path of a request ends; all others are
// otherEndpoint.
var endpoints = map[string]string{"all": "/api/v1/all", "metas": "/api/v1/metas"}

const otherEndpoint = "other"

// NewMetrics registers the metrics of a server and of its store. It fails when they are
// registered already.
func NewMetrics(registry prometheus.Registerer, store *Store) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace,
			Name:      "catalog_server_requests_total",
			Help:      "Requests for the content of catalogs.",
		}, []string{labelHandler, "code"}),
		sizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: metricsNamespace,
			Name:      "catalog_server_response_size_bytes",
			Help:      "Bytes of the replies as they were sent, compressed where they were.",
			Buckets:   []float64{1e3, 1e5, 1e7},
		}, []string{labelHandler}),
	}
	if err := errors.Join(registry.Register(m.requests), registry.Register(m.sizes), registry.Register(pulls{store})); err != nil {
		return nil, fmt.Errorf("registering metrics of the catalog server: %w", err)
	}
	return m, nil
}

// counting has the replies of next counted.
func (m *Metrics) counting(next http.Handler) http.Handler {
	counted := map[string]http.Handler{otherEndpoint: m.countingAs(otherEndpoint, next)}
	for endpoint := range endpoints {
		counted[endpoint] = m.countingAs(endpoint, next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted[endpointOf(r.URL.Path)].ServeHTTP(w, r)
	})
}

func (m *Metrics) countingAs(endpoint string, next http.Handler) http.Handler {
	labels := prometheus.Labels{labelHandler: endpoint}
	return promhttp.InstrumentHandlerCounter(m.requests.MustCurryWith(labels),
		promhttp.InstrumentHandlerResponseSize(m.sizes.MustCurryWith(labels), next))
}

func endpointOf(path string) string {
	for endpoint, suffix := range endpoints {
		if strings.HasSuffix(path, suffix) {
			return endpoint
		}
	}
	return otherEndpoint
}

// pulls tell when the source of each catalog in a store was last looked at.
type pulls struct{ store *Store }

var lastPull = prometheus.NewDesc(metricsNamespace+"_catalog_last_pull_timestamp_seconds",
	"When it was last seen that the content in store is what the source of the catalog stands for.", []string{"catalog"}, nil)

// Describe implements [prometheus.Collector].
func (pulls) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- lastPull }

// Collect implements [prometheus.Collector].
func (p pulls) Collect(metrics chan<- prometheus.Metric) {
	for _, name := range p.store.Names() {
		if record, ok := p.store.Record(name); ok {
			metrics <- prometheus.MustNewConstMetric(lastPull, prometheus.GaugeValue, float64(record.CheckedAt.Unix()), name)
		}
	}
}
