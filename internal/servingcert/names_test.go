package servingcert

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for external, want := range map[string][]string{
		"https://catalogd-service.olmv1-system.svc":               {"catalogd-service.olmv1-system.svc", "catalogd-service.olmv1-system.svc.cluster.local"},
		"https://catalogd-service.olmv1-system.svc.cluster.local": {"catalogd-service.olmv1-system.svc", "catalogd-service.olmv1-system.svc.cluster.local"},
		"https://Catalogs.example.com:8443/x":                     {"catalogs.example.com"},
		"https://127.0.0.1:8443":                                  {"127.0.0.1"},
		"https://[::1]:8443":                                      {"::1"},
	} {
		parsed, err := url.Parse(external)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, Names(parsed)); diff != "" {
			t.Errorf("%s: -want +got\n%s", external, diff)
		}
	}
}
