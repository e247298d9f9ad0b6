package release

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestRecordsThatGrow has records that are small as they are stored, and large when they
// are expanded or decoded.
func TestRecordsThatGrow(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	const rest = `],"info":{"status":"deployed"}}`
	tests := map[string]struct {
		reason string
		head   string
		repeat string
		bytes  int
		want   string // error
		limit  uint64 // bytes that are allocated
	}{
		"more than is read": {
			head: `{"manifest":"`, repeat: "x", bytes: 2 * maxRecord,
			want: "expands to more than 134217728 bytes", limit: maxRecord + 32<<20,
		},
		"empty values": {
			reason: "each of three bytes takes a hundred",
			head:   `{"config":{"a":[[]`, repeat: ",[]", bytes: maxRecord / 2,
			want: "more values than are read", limit: maxRecord/2 + 32<<20,
		},
		"depth": {
			head: `{"config":{"a":[`, repeat: "[", bytes: 1000,
			want: "nested more than 100 levels deep", limit: 1 << 20,
		},
		"as many bytes as they say": {
			head: `{"info":{"status":"deployed"},"manifest":"`, repeat: "x", bytes: maxRecord / 8,
			limit: 3 * maxRecord / 8,
		},
	}
	for name, tc := range tests { //nolint:paralleltest // see above
		t.Run(name, func(t *testing.T) {
			end := rest
			if tc.want == "" {
				end = `"}`
			}
			record := compressed(t, tc.head, tc.repeat, tc.bytes, end)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decode(record)
			runtime.ReadMemStats(&after)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q: %s", err, tc.want, tc.reason)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > tc.limit {
				t.Errorf("a record of %d bytes takes %d, at most %d are right", len(record), allocated, tc.limit)
			}
		})
	}
}

// compressed is a text with a part that is repeated, which is never in memory.
func compressed(t *testing.T, head, part string, size int, tail string) []byte {
	t.Helper()
	var data bytes.Buffer
	writer, err := gzip.NewWriterLevel(&data, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	block := strings.Repeat(part, 1<<16)
	_, errs := io.WriteString(writer, head)
	for written := 0; written < size; written += len(block) {
		end := min(len(block), (size-written)/len(part)*len(part))
		if _, err := io.WriteString(writer, block[:end]); err != nil {
			t.Fatal(err)
		}
	}
	_, err = io.WriteString(writer, tail)
	if err := errors.Join(errs, err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func TestReleasesThatExpandTooFarAreRefused(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	rel := &release.Release{Name: "x", Info: &release.Info{}, Chart: &chart.Chart{
		Files: []*chart.File{{Name: "x", Data: make([]byte, maxRecord/4*3)}}, // as base64 it has that and a third
	}}
	_, err := encodeWhole(rel, chunkSize)
	want := `encoding release "x": release "x" is too large to be recorded: it may have 134217728 bytes with all of its objects`
	if tooLarge := (*RecordTooLargeError)(nil); !errors.As(err, &tooLarge) || err.Error() != want {
		t.Errorf("err = %v\nwant  %s", err, want)
	}
}

func TestManifestsAreBounded(t *testing.T) {
	t.Parallel()
	object := func(data string) string {
		return `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"data":` + data + "}\n"
	}
	few := "[" + strings.Repeat("0,", 1000) + "0]"
	tests := map[string]struct {
		reason   string
		manifest string
		want     string
	}{
		"one that is large": {
			reason:   "text costs what it has",
			manifest: object(`"` + strings.Repeat(`[{,\"`, 1<<20) + `"`),
		},
		"F19: a large one behind the first separator": {
			reason:   "Helm begins each manifest with a separator and a comment",
			manifest: "---\n# Source: x/templates/object.json\n" + object(`"`+strings.Repeat("x", maxManifestYAML)+`"`),
		},
		"values":                 {manifest: object("[" + strings.Repeat("[],", maxManifestValues/2) + "0]"), want: "more values than are read"},
		"values of many objects": {manifest: strings.Repeat(object(few), maxManifestValues/1000), want: "more values than are read"},
		"values of many documents": {
			manifest: strings.Repeat("---\n"+object(few), maxManifestValues/1000), want: "more values than are read",
		},
		"depth":    {manifest: object(strings.Repeat("[", maxManifestDepth) + strings.Repeat("]", maxManifestDepth)), want: "nested more than 210 levels deep"},
		"not JSON": {manifest: "a: " + strings.Repeat("x", maxManifestYAML), want: "more than 2097152 bytes that are not JSON"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := objectsOf(tc.manifest)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// TestWhatCannotBeReadBackIsNotRecorded: the bounds are those of what is read.
func TestWhatCannotBeReadBackIsNotRecorded(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "X", "metadata": map[string]any{"name": "a"}}}
	var values []any
	for range maxManifestValues / 3 {
		values = append(values, int64(0))
	}
	object.Object["data"] = values
	if _, err := chartOf([]*unstructured.Unstructured{object, object}, nil); err != nil {
		t.Errorf("err = %v for what can be read", err)
	}
	_, err := chartOf([]*unstructured.Unstructured{object, object, object, object}, nil)
	if want := `encoding X "a": more values than are read`; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
}

// TestTooLargeRecordsNameAnObject (F19): nothing is written, and the error has what can be made smaller.
func TestTooLargeRecordsNameAnObject(t *testing.T) {
	t.Parallel()
	secrets := fake.NewClientset()
	h := historyOf(t, secrets)
	h.records.chunkBytes = 16
	err := try(t, h, "1", nil, nil)
	tooLarge := (*RecordTooLargeError)(nil)
	if !errors.As(err, &tooLarge) || !strings.HasSuffix(err.Error(), `; its largest object is ConfigMap "a" in namespace "ns" with 79 bytes`) {
		t.Errorf("err = %v", err)
	}
	if written := len(secrets.Actions()); written != 0 {
		t.Errorf("%d requests", written)
	}
}
