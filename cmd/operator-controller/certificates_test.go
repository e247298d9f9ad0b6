package main

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterextensions/operator-controller/internal/servingcert"
)

// Metrics are reached by the names of all Services that lead to them.
func TestMetricsNames(t *testing.T) {
	t.Parallel()
	own := []string{"operator-controller-service.extensions.svc", "operator-controller-service.extensions.svc.cluster.local"}
	for name, tc := range map[string]struct {
		change func(*options)
		want   []string
	}{
		"with catalogs": {
			func(o *options) { o.catalogExternalURL = "https://catalogd-service.extensions.svc" },
			append(own, "catalogd-service.extensions.svc", "catalogd-service.extensions.svc.cluster.local"),
		},
		"with catalogs over HTTP": {
			func(o *options) { o.catalogExternalURL = "http://127.0.0.1:8080" },
			append(own, "127.0.0.1"),
		},
		"without catalogs": {func(o *options) { o.serveCatalogs = false }, own},
	} {
		o := defaultOptions()
		o.systemNamespace = "extensions"
		tc.change(o)
		got, err := metricsNames(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestExpirations: each server with a certificate is told of, and none before it has one.
func TestExpirations(t *testing.T) {
	t.Parallel()
	registry, own := prometheus.NewRegistry(), &servingcert.Certificate{}
	end := time.Unix(70000, 0)
	p := &process{
		metricsTLS: serverTLS{certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Leaf: &x509.Certificate{NotAfter: end}}, nil
		}},
		catalogs: &ownCatalogs{tls: serverTLS{certificate: own.GetCertificate}},
	}
	if err := p.tellExpirations(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			told[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	if diff := cmp.Diff(map[string]float64{"metrics": 70000}, told); diff != "" {
		t.Errorf("expirations (-want +got):\n%s", diff)
	}
}
