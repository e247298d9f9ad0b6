package drift

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

const (
	seenConfigMap = `{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {
		"namespace": "ns", "name": "c", "uid": "u", "resourceVersion": "7", "labels": {"olm.operatorframework.io/owner-name": "x"}}}`
	seenDeployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
		"namespace": "ns", "name": "d", "uid": "u", "resourceVersion": "7", "generation": 2, "labels": {"olm.operatorframework.io/owner-name": "x"},
		"annotations": {"a": "b", "deployment.kubernetes.io/revision": "2"}}, "spec": {"replicas": 1}, "status": {"observedGeneration": 1}}`
)

func TestEventOf(t *testing.T) {
	t.Parallel()
	configMap := schema.GroupKind{Kind: "ConfigMap"}
	tests := map[string]struct {
		kind   schema.GroupKind
		event  apiwatch.EventType
		object string
		want   event
	}{
		"metadata": {
			kind: configMap, event: apiwatch.Modified, object: seenConfigMap,
			want: event{key: object.Key{GroupKind: configMap, Namespace: "ns", Name: "c"}, owner: "x", version: "7", fingerprint: fingerprintOf(t, seenConfigMap)},
		},
		"deleted": {
			kind: configMap, event: apiwatch.Deleted, object: seenConfigMap,
			want: event{key: object.Key{GroupKind: configMap, Namespace: "ns", Name: "c"}, owner: "x", version: "7", fingerprint: object.Fingerprint{Deleted: true}},
		},
		"workload": {
			kind: health.DeploymentKind, event: apiwatch.Added, object: seenDeployment,
			want: event{
				key: object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "d"}, owner: "x", version: "7", fingerprint: fingerprintOf(t, seenDeployment),
				workload: &health.Workload{
					Key:       object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "d"},
					Available: metav1.ConditionUnknown, RollingOut: true, Reason: "its last change has not been taken up yet",
				},
			},
		},
		"deleted workload": {
			kind: health.DeploymentKind, event: apiwatch.Deleted, object: seenDeployment,
			want: event{
				key: object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "d"}, owner: "x", version: "7", fingerprint: object.Fingerprint{Deleted: true},
				workload: &health.Workload{Key: object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "d"}, Available: metav1.ConditionFalse, Reason: "it does not exist"},
			},
		},
		"end of the list": {
			kind: configMap, event: apiwatch.Bookmark,
			object: `{"metadata": {"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}}}`,
			want:   event{key: object.Key{GroupKind: configMap}, version: "8", fingerprint: object.Fingerprint{ResourceVersion: "8"}, endsList: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen, err := eventOf(tc.kind, tc.event, []byte(tc.object))
			if err != nil {
				t.Fatal(err)
			}
			tc.want.kind = tc.event
			if diff := cmp.Diff(tc.want, seen, cmp.AllowUnexported(event{})); diff != "" {
				t.Errorf("eventOf() (-want +got):\n%s", diff)
			}
		})
	}
}

// fingerprintOf is what a pass that reads the object makes of it.
func fingerprintOf(t *testing.T, text string) object.Fingerprint {
	t.Helper()
	read := &unstructured.Unstructured{}
	if err := read.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return object.FingerprintOf(read.GroupVersionKind().GroupKind(), read)
}

func TestErrorsOfAWatch(t *testing.T) {
	t.Parallel()
	_, err := eventOf(health.DeploymentKind, apiwatch.Error, []byte(`{"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}`))
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("error = %v, want that the version is too old", err)
	}
}

func TestEventsAreReadHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	const stream = "{\"type\":\"ADDED\",\"object\":{\"n\":1}}\n{\"type\":\"MODIFIED\",\"object\":{\"n\":2}}\n\n{\"type\":\"DELETED\",\"object\":{\"n\":3}}\n"
	tests := map[string]func(io.Reader) io.Reader{
		"at once":      func(r io.Reader) io.Reader { return r },
		"byte by byte": iotest.OneByteReader,
		"in halves":    iotest.HalfReader,
	}
	for name, arrive := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := newEventReader(arrive(strings.NewReader(stream)))
			var got []string
			for {
				if err := events.wait(); err != nil {
					if err != io.EOF { //nolint:errorlint // nothing wraps the end
						t.Error(err)
					}
					break
				}
				kind, object, err := events.next()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(kind)+string(object))
			}
			if diff := cmp.Diff([]string{`ADDED{"n":1}`, `MODIFIED{"n":2}`, `DELETED{"n":3}`}, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
