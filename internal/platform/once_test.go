package platform_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/platform"
)

func TestReadOnce(t *testing.T) {
	t.Parallel()
	const refused = ": things is forbidden: <nil>"
	refuseOpenShift := func(s *server) { s.answer(pathOpenShift, nil, forbidden()) }
	tests := map[string]struct {
		reason     string
		change     func(*server)
		kubernetes string
		openShift  string
		serves     bool
		unknown    []string
	}{
		"all of it": {
			reason:     "there is nothing unknown on a cluster that is not OpenShift",
			change:     func(*server) {},
			kubernetes: "1.36.0", serves: true,
		},
		"without the version of Kubernetes": {
			reason:  "what else there is to know is known",
			change:  func(s *server) { s.answer(pathVersion, nil, forbidden()) },
			serves:  true,
			unknown: []string{"reading the version of Kubernetes" + refused},
		},
		"without what is served": {
			reason:     "what else there is to know is known",
			change:     func(s *server) { s.answer(pathDiscovery, nil, forbidden()) },
			kubernetes: "1.36.0",
			unknown:    []string{"reading discovery: Forbidden"},
		},
		"without the right to what is not there": {
			reason:     "the API server refuses before it says that there is no such resource",
			change:     refuseOpenShift,
			kubernetes: "1.36.0", serves: true,
		},
		"without the right to another kind of the group": {
			reason: "some other clusters serve a part of the group",
			change: func(s *server) {
				refuseOpenShift(s)
				s.answer(pathOpenShiftAPI, metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "infrastructures"}}}, nil)
			},
			kubernetes: "1.36.0", serves: true,
		},
		"without the right to what is there": {
			reason: "on OpenShift the version is not known",
			change: func(s *server) {
				refuseOpenShift(s)
				s.answer(pathOpenShiftAPI, metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "clusterversions"}}}, nil)
			},
			kubernetes: "1.36.0", serves: true,
			unknown: []string{"reading the version of OpenShift" + refused},
		},
		"without the right to know what is there": {
			reason: "it may be OpenShift",
			change: func(s *server) {
				refuseOpenShift(s)
				s.answer(pathOpenShiftAPI, nil, forbidden())
			},
			kubernetes: "1.36.0", serves: true,
			unknown: []string{"reading the version of OpenShift" + refused},
		},
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
			var unknown []string
			for _, err := range p.Read(t.Context()) {
				unknown = append(unknown, err.Error())
			}
			if diff := cmp.Diff(tc.unknown, unknown); diff != "" {
				t.Errorf("%s: unknown (-want +got)\n%s", tc.reason, diff)
			}
			if p.Kubernetes() != tc.kubernetes || p.OpenShift() != tc.openShift {
				t.Errorf("versions %q and %q, want %q and %q", p.Kubernetes(), p.OpenShift(), tc.kubernetes, tc.openShift)
			}
			serves, err := p.APIs()
			if (err == nil) != tc.serves || tc.serves && !serves("first.test", "v1", "Thing") {
				t.Errorf("APIs() = %v, want it to serve: %t", err, tc.serves)
			}
		})
	}
}
