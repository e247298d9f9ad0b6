package drift

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// FuzzStream reads any bytes as the events of a watch: it comes to an end, which is
// an error, and what was seen until then does not depend on how the bytes arrive.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":`+seenConfigMap+`}{"type":"DELETED","object":`+seenConfigMap+`}`), false)
	f.Add([]byte(`{"type":"MODIFIED","object":`+seenDeployment+`}`), true)
	f.Add([]byte(`{"metadata":{"resourceVersion":"9"},"items":[`+seenDeployment+`,{}]}`), true)
	f.Fuzz(func(t *testing.T, data []byte, deployments bool) {
		kind := schema.GroupKind{Kind: "ConfigMap"}
		if deployments {
			kind = health.DeploymentKind
		}
		atOnce := readStream(t, kind, bytes.NewReader(data))
		slowly := readStream(t, kind, iotest.OneByteReader(bytes.NewReader(data)))
		if diff := cmp.Diff(atOnce, slowly, cmp.AllowUnexported(streamed{}, event{})); diff != "" {
			t.Errorf("at once and byte by byte differ:\n%s", diff)
		}
		listed, counted := map[object.Key]struct{}{}, map[object.Key]struct{}{}
		s := &stream{kind: kind, handle: func(seen event) bool {
			checkEvent(t, kind, seen)
			counts := len(seen.key.Name)%2 == 0
			if counts {
				counted[seen.key] = struct{}{}
			}
			return counts
		}}
		_, _ = s.readPage(bytes.NewReader(data), listed)
		if diff := cmp.Diff(counted, listed); diff != "" {
			t.Errorf("listed are (-those that count +got):\n%s", diff)
		}
	})
}

// streamed is what comes of a stream.
type streamed struct {
	seen     []event
	listed   []map[object.Key]struct{}
	version  string
	progress bool
	err      string
}

func readStream(t *testing.T, kind schema.GroupKind, from io.Reader) streamed {
	t.Helper()
	var got streamed
	s := &stream{
		kind:   kind,
		handle: func(seen event) bool { got.seen = append(got.seen, seen); return true },
		synced: func(found map[object.Key]struct{}, _ string) { got.listed = append(got.listed, found) },
		found:  map[object.Key]struct{}{},
	}
	progress, err := s.read(newEventReader(from))
	if err == nil {
		t.Fatal("the stream ends without an error: it would not be opened again")
	}
	got.version, got.progress, got.err = s.version, progress, err.Error()
	if len(got.seen) > 0 && !progress {
		t.Error("something was seen without progress")
	}
	if len(got.listed) > 1 || len(got.listed) == 0 && got.version != "" {
		t.Errorf("the list ended %d times, and the stream goes on at %q", len(got.listed), got.version)
	}
	reported := map[object.Key]bool{}
	for _, seen := range got.seen {
		checkEvent(t, kind, seen)
		reported[seen.key] = true
	}
	for _, found := range got.listed {
		for key := range found {
			if !reported[key] {
				t.Errorf("%s is listed and was not seen", key)
			}
		}
	}
	return got
}

// checkEvent checks what those who are told of an object rely on.
func checkEvent(t *testing.T, kind schema.GroupKind, seen event) {
	t.Helper()
	isObject := seen.kind != apiwatch.Bookmark && seen.kind != apiwatch.Error
	if !isObject || seen.key.GroupKind != kind || seen.fingerprint == (object.Fingerprint{}) && seen.version != "" {
		t.Errorf("saw %+v in a watch of %s", seen, kind)
	}
	if (seen.kind == apiwatch.Deleted) != seen.fingerprint.Deleted {
		t.Errorf("%s has the fingerprint %+v after %s", seen.key, seen.fingerprint, seen.kind)
	}
	if (seen.workload != nil) != (kind == health.DeploymentKind) {
		t.Errorf("%s of %s has the health %+v", seen.key, kind, seen.workload)
	}
}
