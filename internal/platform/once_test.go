package platform_test

import (
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/platform"
)

func TestReadOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change     func(*server)
		fails      func(error) bool
		kubernetes string
		serves     bool
	}{
		"all of it":              {change: func(*server) {}, fails: func(err error) bool { return err != nil }, kubernetes: "1.36.0", serves: true},
		"without the versions":   {change: func(s *server) { s.answer(pathVersion, nil, forbidden()) }, fails: func(err error) bool { return !apierrors.IsForbidden(err) }, serves: true},
		"without what is served": {change: func(s *server) { s.answer(pathDiscovery, nil, forbidden()) }, fails: func(err error) bool { return !apierrors.IsForbidden(err) }, kubernetes: "1.36.0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			tc.change(s)
			p, err := platform.New(platform.Config{
				REST: &rest.Config{Host: "http://cluster.test", QPS: -1}, HTTPClient: &http.Client{Transport: s}, Changed: func() {}, Regranted: func() {},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Read(t.Context()); tc.fails(err) {
				t.Errorf("Read() = %v", err)
			}
			if got := p.Kubernetes(); got != tc.kubernetes {
				t.Errorf("Kubernetes() = %q, want %q", got, tc.kubernetes)
			}
			serves, err := p.APIs()
			if (err == nil) != tc.serves || tc.serves && !serves("first.test", "v1", "Thing") {
				t.Errorf("APIs() = %v, want it to serve: %t", err, tc.serves)
			}
		})
	}
}
