package drift

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	gocmp "github.com/google/go-cmp/cmp"
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
		"F18: deleted after it has failed": {
			kind: object.JobKind, event: apiwatch.Deleted,
			object: `{"metadata": {"name": "j", "namespace": "ns", "uid": "u", "resourceVersion": "7", "labels": {"olm.operatorframework.io/owner-name": "x"}},
				"spec": {"ttlSecondsAfterFinished": 5}, "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}}`,
			want: event{
				key: object.Key{GroupKind: object.JobKind, Namespace: "ns", Name: "j"}, owner: "x", version: "7", fingerprint: object.Fingerprint{Deleted: true},
				workload: &health.Workload{
					Key: object.Key{GroupKind: object.JobKind, Namespace: "ns", Name: "j"}, Available: metav1.ConditionFalse, Stuck: true, Ended: true,
					Reason: "the Job has failed: DeadlineExceeded",
				},
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
			if diff := gocmp.Diff(tc.want, seen, gocmp.AllowUnexported(event{})); diff != "" {
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
			if diff := gocmp.Diff([]string{`ADDED{"n":1}`, `MODIFIED{"n":2}`, `DELETED{"n":3}`}, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLargeEventsArePassedOver has an event that is larger than what is held between two that are
// not, however they arrive.
func TestLargeEventsArePassedOver(t *testing.T) {
	t.Parallel()
	configMap := schema.GroupKind{Kind: "ConfigMap"}
	key := object.Key{GroupKind: configMap, Namespace: "ns", Name: "c"}
	small := `{"type":"ADDED","object":` + seenConfigMap + `}`
	names := `"name":"c","namespace":"ns","uid":"u","resourceVersion":"8"`
	large := `"ownerReferences":[{"name":"` + strings.Repeat(`\u003c\"{`, maxEvent/8) + `"}]`
	begins := func(of, metadata string) string {
		return `{"type":"` + of + `","object":{"kind":"PartialObjectMetadata","metadata":{` + metadata + `}}}`
	}
	tests := map[string]struct {
		large string
		want  event
		err   error // in its place
	}{
		"changed":       {large: begins("MODIFIED", names+","+large), want: event{kind: apiwatch.Modified, key: key, version: "8", unknown: true}},
		"deleted":       {large: begins("DELETED", names+","+large), want: event{kind: apiwatch.Deleted, key: key, version: "8", fingerprint: object.Fingerprint{Deleted: true}}},
		"names at last": {large: begins("MODIFIED", large+","+names), err: errLargeEvent},
		"an error":      {large: begins("ERROR", names+","+large), err: errLargeEvent},
		"unfinished":    {large: strings.TrimRight(begins("MODIFIED", names+","+large), "}"), err: io.EOF},
	}
	for name, tc := range tests {
		for arrival, arrive := range map[string]func(string) io.Reader{
			"at once":   func(text string) io.Reader { return strings.NewReader(text) },
			"in halves": func(text string) io.Reader { return iotest.HalfReader(strings.NewReader(text)) },
			"in lines": func(text string) io.Reader {
				return strings.NewReader(strings.ReplaceAll(text, `}{"type"`, "}\n"+`{"type"`))
			},
		} {
			t.Run(name+", "+arrival, func(t *testing.T) {
				t.Parallel()
				first, err := eventOf(configMap, apiwatch.Added, []byte(seenConfigMap))
				if err != nil {
					t.Fatal(err)
				}
				text, want := small+tc.large, []event{first}
				if tc.err == nil {
					text += small + small
					want = append(want, tc.want, first, first)
				}
				var seen []event
				s := &stream{kind: configMap, handle: func(one event) bool { seen = append(seen, one); return true }}
				if _, err := s.read(newEventReader(arrive(text))); !errors.Is(err, cmp.Or(tc.err, io.EOF)) {
					t.Errorf("it ends with %v, want %v", err, cmp.Or(tc.err, io.EOF))
				}
				if diff := gocmp.Diff(want, seen, gocmp.AllowUnexported(event{})); diff != "" {
					t.Errorf("seen (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestNothingBehindALargeEventIsLost has events of every length arrive together with the end of
// one that is passed over: one of them ends where the decoder's buffer does.
func TestNothingBehindALargeEventIsLost(t *testing.T) {
	t.Parallel()
	for length := range 5_000 {
		padded := `{"type":"ADDED","padding":"` + strings.Repeat("x", length) + `","object":` + seenConfigMap + `}`
		reader := newEventReader(strings.NewReader(`}}` + padded + "\n" + padded + "\n"))
		if err := reader.discard([]byte(`{"object":{`)); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for ; reader.wait() == nil; seen++ {
			if _, _, err := reader.next(); err != nil {
				t.Fatalf("event %d behind it, padded by %d bytes: %v", seen, length, err)
			}
		}
		if seen != 2 {
			t.Errorf("of events that are padded by %d bytes, %d were read, want 2", length, seen)
		}
	}
}
