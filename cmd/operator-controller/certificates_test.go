package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
