package main

import (
	"crypto/tls"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterextensions/operator-controller/internal/controller"
)

// metrics are those of who acts.
type metrics struct {
	extensions *controller.Metrics
	catalogs   *controller.CatalogMetrics
}

func newMetrics(registry prometheus.Registerer) (metrics, error) {
	extensions, err := controller.NewMetrics(registry)
	if err != nil {
		return metrics{}, err
	}
	catalogs, err := controller.NewCatalogMetrics(registry)
	return metrics{extensions, catalogs}, err
}

// reset drops what is told of objects.
func (m metrics) reset() {
	m.extensions.Reset()
	m.catalogs.Reset()
}

// tellExpirations has it told when the certificates of the servers of this process end.
func (p *process) tellExpirations(registry prometheus.Registerer) error {
	served := expirations{"metrics": p.metricsTLS}
	if p.catalogs != nil {
		served["catalogs"] = p.catalogs.tls
	}
	if err := registry.Register(served); err != nil {
		return fmt.Errorf("registering metrics of certificates: %w", err)
	}
	return nil
}

// expirations tell when the certificates of servers end, by the names of the servers.
type expirations map[string]serverTLS

var expiration = prometheus.NewDesc("operator_controller_server_certificate_expiration_timestamp_seconds",
	"When the certificate ends with which the server shows who it is.", []string{"server"}, nil)

// Describe implements [prometheus.Collector].
func (expirations) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- expiration }

// Collect implements [prometheus.Collector]. There is nothing to tell of a server without TLS,
// and of one that has no certificate yet.
func (e expirations) Collect(metrics chan<- prometheus.Metric) {
	for server, shown := range e {
		if shown.certificate == nil {
			continue
		}
		certificate, err := shown.certificate(&tls.ClientHelloInfo{})
		if err != nil || certificate == nil || certificate.Leaf == nil {
			continue
		}
		metrics <- prometheus.MustNewConstMetric(expiration, prometheus.GaugeValue, float64(certificate.Leaf.NotAfter.Unix()), server)
	}
}
