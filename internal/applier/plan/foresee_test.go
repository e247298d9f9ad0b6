package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestIsStoredSame(t *testing.T) {
	t.Parallel()
	const live = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, resourceVersion: "1", managedFields: []}, data: {a: b}}`
	for name, test := range map[string]struct {
		after string
		want  bool
	}{
		"nothing":            {live, true},
		"who wrote what":     {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, resourceVersion: "1", managedFields: [{}]}, data: {a: b}}`, true},
		"a value":            {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, resourceVersion: "1"}, data: {a: c}}`, false},
		"a label":            {`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: b}}, data: {a: b}}`, false},
		"without any object": {`{}`, false},
	} {
		if got := isStoredSame(stepOf(t, test.after).Object, stepOf(t, live).Object); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// What an API server gives a Service in a dry run is another thing each time.
func TestAllocatedAddressesAreLeftOut(t *testing.T) {
	t.Parallel()
	service := func(spec string) *unstructured.Unstructured {
		return stepOf(t, "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: "+spec+"}").Object
	}
	for name, test := range map[string]struct{ after, live, wanted, want string }{
		"allocated now": {
			after: `{clusterIP: 1.2.3.4, clusterIPs: [1.2.3.4], healthCheckNodePort: 9, ports: [{port: 1, nodePort: 30000}]}`,
			live:  `{ports: [{port: 1}]}`, wanted: `{ports: [{port: 1}]}`, want: `{ports: [{port: 1}]}`,
		},
		"there before": {
			after: `{clusterIP: 1.2.3.4, ports: [{port: 1, nodePort: 30000}]}`,
			live:  `{clusterIP: 1.2.3.4, ports: [{port: 1, nodePort: 30000}]}`, wanted: `{}`,
			want: `{clusterIP: 1.2.3.4, ports: [{port: 1, nodePort: 30000}]}`,
		},
		"asked for": {
			after: `{clusterIP: None, ports: [{port: 1, nodePort: 30000}]}`, live: `{}`,
			wanted: `{clusterIP: None, ports: [{port: 1, nodePort: 30000}]}`, want: `{clusterIP: None, ports: [{port: 1, nodePort: 30000}]}`,
		},
	} {
		got := withoutAllocated(service(test.after), service(test.live), service(test.wanted))
		if diff := cmp.Diff(service(test.want).Object, got.Object); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
