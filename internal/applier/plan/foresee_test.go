package plan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestIsLackOfRights(t *testing.T) {
	t.Parallel()
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "r", errors.New(text))
	}
	for text, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":        {nil, false},
		"a right":        {forbidden(`User "u" cannot patch resource "roles" in API group "" in the namespace "ns"`), true},
		"an escalation":  {forbidden("user \"u\" (groups=[\"g\"]) is attempting to grant RBAC permissions not currently held:\n{}"), true},
		"a finalizer":    {forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no"), true},
		"a quota":        {forbidden("exceeded quota: q, requested: 1, used: 1, limited: 1"), false},
		"a policy":       {forbidden(`ValidatingAdmissionPolicy "p" with binding "b" denied request: no`), false},
		"something else": {errors.New(`User "u" cannot patch`), false},
	} {
		if got := isLackOfRights(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", text, got, test.want)
		}
	}
}

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
