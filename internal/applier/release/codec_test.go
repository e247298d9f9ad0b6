package release

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	stored := &release.Release{
		Name: "x", Namespace: "ns", Version: 3, Manifest: "---\n# Source: a\n{}\n",
		Info:   &release.Info{Status: release.StatusDeployed, Description: "Upgrade complete"},
		Labels: map[string]string{"olm.operatorframework.io/bundle-version": "1.0.0+2"},
	}
	chunks, err := encode(stored, chunkSize)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(slices.Concat(chunks...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored, got); diff != "" {
		t.Errorf("a record reads differently from what was written (-want +got):\n%s", diff)
	}
}

// smallChunk is the size of chunks in tests, in bytes.
const smallChunk = 4 << 10

func TestRecordsAreBounded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		manifest int // bytes, compressed
		prints   int // likewise
		chunks   int // none: an error
		kept     bool
	}{
		"one chunk": {manifest: smallChunk / 2, chunks: 1},
		"several":   {manifest: 2 * smallChunk, prints: smallChunk / 2, chunks: 3, kept: true},
		"too many with fingerprints": {
			reason:   "without them it has as many as there may be",
			manifest: (maxChunks - 1) * smallChunk, prints: smallChunk, chunks: maxChunks,
		},
		"too many": {manifest: maxChunks * smallChunk},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := &release.Release{Name: "x", Manifest: testkit.Noise(t, tc.manifest), Info: &release.Info{}, Labels: map[string]string{labelInputs: "i"}}
			given := *want
			given.Labels = maps.Clone(want.Labels)
			if tc.prints > 0 {
				given.Labels[labelLastApplied] = testkit.Noise(t, tc.prints)
			}
			if tc.kept {
				want.Labels = maps.Clone(given.Labels)
			}
			chunks, err := encodeWhole(&given, smallChunk)
			if tc.chunks == 0 {
				var tooLarge *RecordTooLargeError
				if !errors.As(err, &tooLarge) || tooLarge.Needed != maxChunks+1 || tooLarge.Allowed != maxChunks {
					t.Errorf("err = %v, want it to say how many chunks are needed and allowed", err)
				}
				return
			}
			if err != nil || len(chunks) != tc.chunks {
				t.Fatalf("%d chunks, %v, want %d: %s", len(chunks), err, tc.chunks, tc.reason)
			}
			got, err := decode(slices.Concat(chunks...))
			if err != nil || !reflect.DeepEqual(got, want) || !maps.Equal(given.Labels, want.Labels) {
				t.Errorf("the record does not read as it should (%v)", err)
			}
		})
	}
}

func TestDamagedRecordsAreErrors(t *testing.T) {
	t.Parallel()
	chunks, err := encode(&release.Release{Name: "x", Info: &release.Info{}}, chunkSize)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty":     nil,
		"no gzip":   []byte("garbage"),
		"truncated": chunks[0][:len(chunks[0])/2],
	} {
		if _, err := decode(data); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestExpandedRecordsAreBounded(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	const limit = 1 << 16
	for _, size := range []int{limit, limit + 1, 1000 * limit} {
		plain, err := expand(testkit.Gzip(make([]byte, size)), limit)
		if (err == nil) != (size <= limit) || err == nil && len(plain) != size {
			t.Errorf("%d bytes: %d are read, %v", size, len(plain), err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	chunks, err := encode(&release.Release{Name: "x", Info: &release.Info{}}, chunkSize)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(chunks[0])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		rel, err := decode(data)
		if err == nil && rel.Info == nil {
			t.Error("a release without information was accepted: its users would crash")
		}
	})
}

func TestChunkNameVector(t *testing.T) {
	t.Parallel()
	// The empty FNV-1a 64 digest is the offset basis cbf29ce484222325.
	got := chunkName("k", "", nil)
	if want := "k-zpzjzzeeeirsk"; got != want {
		t.Errorf("chunkName = %q, want %q", got, want)
	}
	if one, another := chunkName("k", "a", []byte("x")), chunkName("k", "b", []byte("x")); one == another {
		t.Errorf("two extensions of one name share the chunk %q, which goes with the first of them", one)
	}
}

func TestRecordsOfLongNamesAreNobodyElses(t *testing.T) {
	t.Parallel()
	short := strings.Repeat("a", object.MaxReleaseName)
	for _, name := range []string{"x", short} {
		if got := RecordName(name); got != name {
			t.Errorf("RecordName(%q) = %q: names that fit are the reference implementation's", name, got)
		}
	}
	seen := map[string]string{}
	for _, name := range []string{
		short + "b", short + "c", strings.Repeat("a", maxLabelValue), strings.Repeat("a", maxLabelValue+1),
		strings.Repeat("a", 253), strings.Repeat("a.", 100) + "a", strings.Repeat("a-", 100) + "a",
	} {
		got := RecordName(name)
		if other, found := seen[got]; found || RecordName(got) == got || got == object.ReleaseName(name) {
			t.Errorf("RecordName(%q) = %q, as that of %q", name, got, other)
		}
		seen[got] = name
		for what, problems := range map[string][]string{
			"name of a Secret": validation.IsDNS1123Subdomain(chunkName(recordKey(got, 999_999), "uid", nil)),
			"label":            validation.IsValidLabelValue(got),
		} {
			if len(problems) > 0 {
				t.Errorf("RecordName(%q) = %q is no %s: %q", name, got, what, problems)
			}
		}
		if key := recordKey(got, 12); releaseIn(key) != got {
			t.Errorf("releaseIn(%q) = %q", key, releaseIn(key))
		}
	}
}

func TestReleaseKeptBesideTheVersion(t *testing.T) {
	t.Parallel()
	got := revisionFrom(&release.Release{Labels: map[string]string{labelBundleVersion: "1.0.0", labelBundleRelease: "2"}})
	if got.Bundle.Version != "1.0.0+2" {
		t.Errorf("version = %q, want 1.0.0+2", got.Bundle.Version)
	}
}

func TestRevisionsAreRemembered(t *testing.T) {
	t.Parallel()
	const image = "registry.test/p:v1"
	digest := "sha256:" + strings.Repeat("1", 64)
	tests := map[string]struct {
		reason string
		image  string
		digest string
		change map[string]string // what somebody else makes of the labels
		want   string            // digest
	}{
		"by tag":    {reason: "the digest is beside it", image: image, digest: digest, want: digest},
		"by digest": {reason: "it is part of the reference", image: "registry.test/p@" + digest, digest: digest, want: digest},
		"by both":   {reason: "it is part of the reference", image: image + "@" + digest, digest: digest, want: digest},
		"not known": {reason: "nothing is made up", image: image},
		"carried over": {
			reason: "Helm keeps labels that the next writer does not name: this one is about another image", image: image, digest: digest,
			change: map[string]string{labelBundleReference: "registry.test/p:v2"},
		},
		"of the reference implementation": {
			reason: "it knows no such label", image: image, digest: digest, change: map[string]string{labelBundleResolved: ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			labels := labelsOf(installation.Revision{Image: tc.image, Digest: tc.digest, OperatorCondition: "p.v1", DependsOnCluster: true})
			maps.Copy(labels, tc.change)
			want := installation.Revision{Image: labels[labelBundleReference], Digest: tc.want, OperatorCondition: "p.v1", DependsOnCluster: true}
			if diff := cmp.Diff(want, revisionFrom(&release.Release{Labels: labels, Manifest: "{}"})); diff != "" {
				t.Errorf("revision (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestManifestsOfEveryKind(t *testing.T) {
	t.Parallel()
	const a, b = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"---\n# no comment"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","generation":3}}`
	tests := map[string]struct {
		reason   string
		manifest string
		invalid  bool
	}{
		"ours":      {reason: "as Helm puts it together from files", manifest: "---\n# Source: x\n" + a + "\n---\n# Source: y\n" + b + "\n"},
		"reference": {reason: "JSON values one after the other", manifest: a + "\n" + b + "\n"},
		"mixed":     {reason: "YAML, and an empty document", manifest: a + "\n---\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  generation: 3\n"},
		"cut":       {manifest: a[:40], invalid: true},
		"no YAML":   {manifest: "a: [", invalid: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := objectsOf(tc.manifest)
			if (err != nil) != tc.invalid {
				t.Fatalf("err = %v, want one: %t", err, tc.invalid)
			}
			if tc.invalid {
				return
			}
			if len(objects) != 2 || objects[0].GetName() != "a" || objects[1].GetName() != "b" || objects[1].GetGeneration() != 3 {
				t.Errorf("objects = %v: %s", objects, tc.reason)
			}
			if text, _, _ := unstructured.NestedString(objects[0].Object, "data", "k"); text != "---\n# no comment" {
				t.Errorf("text = %q, want it as it was written", text)
			}
		})
	}
}
