package imagecopy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func startRegistry(t *testing.T, options ...registry.Option) *testkit.Registry {
	t.Helper()
	started, err := testkit.StartRegistry(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = started.Close() }) // it may have been closed
	return started
}

// image pushes one and gives its digest and the size of its manifest.
func image(t *testing.T, at *testkit.Registry, target, content string) string {
	t.Helper()
	digest, err := at.Push(t.Context(), target, fstest.MapFS{"manifests/file": {Data: []byte(content)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// artifact pushes a manifest with one layer, which may refer to a subject.
func artifact(t *testing.T, at *testkit.Registry, target, mediaType, content string, subject *imagespec.Descriptor) imagespec.Descriptor {
	t.Helper()
	manifest := imagespec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: imagespec.MediaTypeImageManifest, ArtifactType: mediaType, Subject: subject,
	}
	var err error
	if manifest.Config, err = at.PushBlob(t.Context(), target, imagespec.MediaTypeEmptyJSON, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	layer, err := at.PushBlob(t.Context(), target, mediaType, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": "c2lnbmF0dXJl"}
	manifest.Layers = []imagespec.Descriptor{layer}
	raw, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := at.PushManifest(t.Context(), target, manifest.MediaType, raw)
	if err != nil {
		t.Fatal(err)
	}
	return imagespec.Descriptor{MediaType: manifest.MediaType, Digest: digest.Digest(pushed), Size: int64(len(raw)), ArtifactType: mediaType}
}

func tagOf(digest string) string { return strings.ReplaceAll(digest, ":", "-") }

// subjectOf describes what was pushed.
func subjectOf(mediaType, pushed string) *imagespec.Descriptor {
	return &imagespec.Descriptor{MediaType: mediaType, Digest: digest.Digest(pushed), Size: 1}
}

// signed pushes an index of two platforms with all kinds of what can be attached: tags of
// cosign to the index and to one of its images, what refers to the index, and to that in turn.
// Without the API for that, a tag says what refers.
func signed(t *testing.T, at *testkit.Registry, hasAPI bool) (index string, attached []string) {
	t.Helper()
	one, two := image(t, at, "team/app:amd", "one"), image(t, at, "team/app:arm", "two")
	index, err := at.PushIndex(t.Context(), "team/app:v1",
		testkit.IndexEntry{Platform: "linux/amd64", Digest: one, Size: 1}, testkit.IndexEntry{Platform: "linux/arm64", Digest: two, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	const simple = "application/vnd.dev.cosign.simplesigning.v1+json"
	for _, tag := range []string{tagOf(index) + ".sig", tagOf(index) + ".att", tagOf(one) + ".sbom"} {
		attached = append(attached, artifact(t, at, "team/app:"+tag, simple, tag, nil).Digest.String())
	}
	const bundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	refers := artifact(t, at, "team/app", bundle, "bundle", subjectOf(imagespec.MediaTypeImageIndex, index))
	again := artifact(t, at, "team/app", bundle, "bundle of a bundle", subjectOf(refers.MediaType, refers.Digest.String()))
	if !hasAPI {
		for subject, descriptor := range map[string]imagespec.Descriptor{index: refers, refers.Digest.String(): again} {
			list := imagespec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: imagespec.MediaTypeImageIndex, Manifests: []imagespec.Descriptor{descriptor}}
			if _, err := at.PushManifest(t.Context(), "team/app:"+tagOf(subject), list.MediaType, list); err != nil {
				t.Fatal(err)
			}
		}
	}
	return index, append(attached, refers.Digest.String(), again.Digest.String())
}

// job is that of an image of the source.
func job(from, to *testkit.Registry, ref string) Job {
	repository, tag, _ := strings.Cut(ref, ":")
	repository, _, _ = strings.Cut(repository, "@")
	if strings.Contains(ref, "@") {
		tag = ""
	}
	return Job{
		Name: "registry.test/" + ref, Sources: []Source{{Ref: from.Host() + "/" + ref}},
		Repository: to.Host() + "/mirror/registry.test/" + repository, Tag: tag,
	}
}

func none(Result) {}

// copied copies with a Copier of its own, and fails if anything is missing.
func copied(t *testing.T, jobs ...Job) []Result {
	t.Helper()
	results := New(Config{}).Copy(t.Context(), jobs, none)
	for _, one := range Missing(results) {
		t.Fatalf("%s: %v", one.Name, one.Err)
	}
	return results
}

// An image is copied with all platforms and all that is attached to it, from and to a registry
// of each kind.
func TestCopy(t *testing.T) {
	t.Parallel()
	for _, fromAPI := range []bool{true, false} {
		for _, toAPI := range []bool{true, false} {
			t.Run(fmt.Sprintf("from %t to %t", fromAPI, toAPI), func(t *testing.T) {
				t.Parallel()
				from, to := startRegistry(t, registry.WithReferrersSupport(fromAPI)), startRegistry(t, registry.WithReferrersSupport(toAPI))
				index, attached := signed(t, from, fromAPI)
				result := copied(t, job(from, to, "team/app@"+index))[0]
				if result.Digest != index || result.Attached != len(attached) || result.Bytes == 0 {
					t.Errorf("result is %+v", result)
				}
				// The source is not needed for anything of it.
				if err := from.Close(); err != nil {
					t.Fatal(err)
				}
				repository := to.Host() + "/mirror/registry.test/team/app"
				for _, digest := range append(attached, index) {
					exists(t, repository+"@"+digest)
				}
				for _, tag := range []string{tagOf(index) + ".sig", tagOf(index) + ".att"} {
					exists(t, repository+":"+tag)
				}
				hasReferrer(t, repository+"@"+index, attached[len(attached)-2])
				hasReferrer(t, repository+"@"+attached[len(attached)-2], attached[len(attached)-1])
				if tag := exists(t, repository+":mirror-"+strings.TrimPrefix(index, "sha256:")); tag.Digest.String() != index {
					t.Errorf("the tag stands for %s", tag.Digest)
				}
			})
		}
	}
}

// exists reads an image whole, with the digests of all its layers.
func exists(t *testing.T, text string) *remote.Descriptor {
	t.Helper()
	ref, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Get(ref)
	if err != nil {
		t.Fatalf("%s is not there: %v", text, err)
	}
	if found.MediaType.IsIndex() {
		index, err := found.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		list, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list.Manifests {
			exists(t, ref.Context().Digest(one.Digest.String()).String())
		}
		return found
	}
	image, err := found.Image()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		if is, err := remote.Head(ref); err != nil || is.Digest != found.Digest {
			t.Errorf("%s: %v", text, err)
		}
		content, err := layer.Compressed()
		if err != nil {
			t.Fatalf("%s: a layer is not there: %v", text, err)
		}
		_ = content.Close()
	}
	return found
}

// TestPagesOfReferrers: a registry lists what refers to an image in pages.
func TestPagesOfReferrers(t *testing.T) {
	t.Parallel()
	from, to := startRegistry(t, registry.WithReferrersSupport(true)), startRegistry(t)
	pushed := image(t, from, "team/app:v1", "one")
	var attached []string
	for _, content := range []string{"one", "another", "a third"} {
		attached = append(attached, artifact(t, from, "team/app", "application/vnd.dev.sigstore.bundle.v0.3+json", content,
			subjectOf(imagespec.MediaTypeImageManifest, pushed)).Digest.String())
	}
	from.Use(testkit.Paged(1))
	copied(t, job(from, to, "team/app:v1"))
	for _, one := range attached {
		hasReferrer(t, to.Host()+"/mirror/registry.test/team/app@"+pushed, one)
	}
}

func hasReferrer(t *testing.T, text, want string) {
	t.Helper()
	ref, err := name.NewDigest(text)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Referrers(ref)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Manifests, func(d v1.Descriptor) bool { return d.Digest.String() == want }) {
		t.Errorf("%s does not refer to %s: %v", want, text, list.Manifests)
	}
}

// What is there is not sent again, and a copy that was interrupted goes on.
func TestResume(t *testing.T) {
	t.Parallel()
	from, to := startRegistry(t), startRegistry(t)
	index, _ := signed(t, from, false)
	image(t, from, "team/other:v1", "other")
	jobs := []Job{job(from, to, "team/app:v1"), job(from, to, "team/other:v1")}
	broken := New(Config{})
	from.Use(testkit.FailPath("/team/other/blobs/", http.StatusForbidden))
	results := broken.Copy(t.Context(), jobs, none)
	if missing := Missing(results); len(missing) != 1 || missing[0].Name != "registry.test/team/other:v1" {
		t.Fatalf("missing is %+v", missing)
	}
	from.Heal()
	from.ResetRequests()
	to.ResetRequests()
	results = copied(t, jobs...)
	if results[0].Sent != 0 || results[1].Sent != 1 {
		t.Errorf("sent %d and %d manifests", results[0].Sent, results[1].Sent)
	}
	if count := from.Count("/team/app/blobs/"); count != 0 {
		t.Errorf("%d blobs that are there were read", count)
	}
	for _, request := range to.Requests() {
		if strings.Contains(request.Path, "/team/app/") && request.Method != http.MethodGet && request.Method != http.MethodHead {
			t.Errorf("%s %s", request.Method, request.Path)
		}
	}
	if got := exists(t, jobs[0].Repository+":v1").Digest.String(); got != index {
		t.Errorf("the tag stands for %s", got)
	}
	// A tag that has moved is followed.
	moved := image(t, from, "team/other:v1", "moved")
	copied(t, jobs...)
	if got := exists(t, jobs[1].Repository+":v1").Digest.String(); got != moved {
		t.Errorf("the tag that has moved stands for %s, want %s", got, moved)
	}
}

// A copy that ended between what refers and the list of that puts it there.
func TestResumeOfWhatRefers(t *testing.T) {
	t.Parallel()
	from, to := startRegistry(t), startRegistry(t)
	index, attached := signed(t, from, false)
	refers := attached[len(attached)-2]
	to.Use(testkit.FailPath("/manifests/"+tagOf(index), http.StatusForbidden))
	if Missing(New(Config{}).Copy(t.Context(), []Job{job(from, to, "team/app@"+index)}, none)) == nil {
		t.Fatal("nothing is missing")
	}
	to.Heal()
	copied(t, job(from, to, "team/app@"+index))
	hasReferrer(t, to.Host()+"/mirror/registry.test/team/app@"+index, refers)
}

// Nothing is sent to the target by a look.
func TestList(t *testing.T) {
	t.Parallel()
	from, to := startRegistry(t), startRegistry(t)
	index, attached := signed(t, from, false)
	var told []string
	results := New(Config{}).List(t.Context(), []Job{job(from, to, "team/app:v1"), job(from, to, "team/none:v1")}, func(r Result) { told = append(told, r.Name) })
	if results[0].Digest != index || results[0].Attached != len(attached) || results[0].Bytes < 1000 || results[0].Err != nil {
		t.Errorf("got %+v", results[0])
	}
	if results[1].Err == nil || len(told) != 2 {
		t.Errorf("got %+v, and told %v", results[1], told)
	}
	if requests := to.Requests(); len(requests) != 0 {
		t.Errorf("the target was asked for %v", requests)
	}
	if requests := from.Count("/blobs/"); requests != 0 {
		t.Errorf("%d blobs were read", requests)
	}
}

// The first source that has an image is the one that counts, and if none has it all are named.
func TestSources(t *testing.T) {
	t.Parallel()
	empty, from, to := startRegistry(t), startRegistry(t), startRegistry(t)
	image(t, from, "team/app:v1", "content")
	one := job(from, to, "team/app:v1")
	one.Sources = append(job(empty, to, "team/app:v1").Sources, one.Sources...)
	copied(t, one)
	lacking := job(empty, to, "team/app:v2")
	lacking.Sources = append(lacking.Sources, job(from, to, "team/app:v2").Sources...)
	err := New(Config{}).Copy(t.Context(), []Job{lacking}, none)[0].Err
	if err == nil || !strings.Contains(err.Error(), empty.Host()+"/team/app:v2") || !strings.Contains(err.Error(), from.Host()+"/team/app:v2") {
		t.Errorf("got %v", err)
	}
}

// Bytes that are not those of the digest do not reach the target.
func TestDigestsAreVerified(t *testing.T) {
	t.Parallel()
	from, to := startRegistry(t), startRegistry(t)
	pushed := image(t, from, "team/app:v1", "content")
	for path, content := range map[string]string{"/blobs/": "other", "/manifests/" + pushed: `{"schemaVersion":2}`} {
		from.Use(testkit.ReplaceBody(path, imagespec.MediaTypeImageManifest, []byte(content)))
		result := New(Config{}).Copy(t.Context(), []Job{job(from, to, "team/app@"+pushed)}, none)[0]
		if result.Err == nil {
			t.Errorf("%s: other bytes were copied", path)
		}
		from.Heal()
	}
	for _, request := range to.Requests() {
		if request.Method == http.MethodPut && strings.Contains(request.Path, "/manifests/") {
			t.Errorf("%s %s", request.Method, request.Path)
		}
	}
}

// What registries send is bounded, and one that is hostile ends with an error of its image.
func TestHostileSources(t *testing.T) {
	t.Parallel()
	const manifestType, indexType = imagespec.MediaTypeImageManifest, imagespec.MediaTypeImageIndex
	for name, tt := range map[string]struct {
		push func(t *testing.T, from *testkit.Registry) (string, error)
		want string
	}{
		"a large manifest": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			return from.PushManifest(t.Context(), "team/app:v1", manifestType, []byte(`{"schemaVersion":2,"x":"`+strings.Repeat("x", maxManifest)+`"}`))
		}, errLarge.Error()},
		"many layers": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			layer := imagespec.Descriptor{MediaType: imagespec.MediaTypeImageLayerGzip, Digest: digest.FromString("x")}
			return from.PushManifest(t.Context(), "team/app:v1", manifestType, imagespec.Manifest{Config: layer, Layers: slices.Repeat([]imagespec.Descriptor{layer}, maxParts+1)})
		}, "has more than 512 parts"},
		"indexes in indexes": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			pushed := image(t, from, "team/app", "x")
			for range maxDepth + 1 {
				var err error
				if pushed, err = from.PushIndex(t.Context(), "team/app", testkit.IndexEntry{Platform: "linux/amd64", Digest: pushed, Size: 1}); err != nil {
					return "", err
				}
			}
			return from.PushIndex(t.Context(), "team/app:v1", testkit.IndexEntry{Platform: "linux/amd64", Digest: pushed, Size: 1})
		}, "nested deeper than 4"},
		"many images": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			empty := imagespec.DescriptorEmptyJSON
			var indexes []testkit.IndexEntry
			for i := range 2 {
				var entries []testkit.IndexEntry
				for n := range maxParts {
					pushed, err := from.PushManifest(t.Context(), "team/app", manifestType, imagespec.Manifest{
						Versioned: specs.Versioned{SchemaVersion: 2}, Config: empty, Annotations: map[string]string{"n": fmt.Sprint(i, n)},
					})
					if err != nil {
						return "", err
					}
					entries = append(entries, testkit.IndexEntry{Platform: "linux/amd64", Digest: pushed, Size: 1})
				}
				pushed, err := from.PushIndex(t.Context(), "team/app", entries...)
				if err != nil {
					return "", err
				}
				indexes = append(indexes, testkit.IndexEntry{Platform: "linux/amd64", Digest: pushed, Size: 1})
			}
			return from.PushIndex(t.Context(), "team/app:v1", indexes...)
		}, "has more than 1000 manifests"},
		"one index, often": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			pushed := image(t, from, "team/app", "x")
			for range maxDepth - 1 {
				var err error
				entries := slices.Repeat([]testkit.IndexEntry{{Platform: "linux/amd64", Digest: pushed, Size: 1}}, maxParts)
				if pushed, err = from.PushIndex(t.Context(), "team/app:v1", entries...); err != nil {
					return "", err
				}
			}
			// Its end is that of a blob: it has been read whole by then, and quickly.
			from.Use(testkit.FailPath("/blobs/", http.StatusForbidden))
			return pushed, nil
		}, "403"},
		"no JSON": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			return from.PushManifest(t.Context(), "team/app:v1", manifestType, []byte("text"))
		}, "invalid character"},
		"schema 1": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			return from.PushManifest(t.Context(), "team/app:v1", "application/vnd.docker.distribution.manifest.v1+json", []byte(`{"schemaVersion":1}`))
		}, "schema 1"},
		"many that refer": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			pushed := image(t, from, "team/app:v1", "x")
			one := imagespec.Descriptor{MediaType: "application/x", Digest: digest.FromString("x")}
			list := imagespec.Index{MediaType: indexType, Manifests: slices.Repeat([]imagespec.Descriptor{one}, maxParts+1)}
			list.SchemaVersion = 2
			return from.PushManifest(t.Context(), "team/app:"+tagOf(pushed), indexType, list)
		}, "they are more than 512"},
		"silent": {func(t *testing.T, from *testkit.Registry) (string, error) {
			t.Helper()
			from.Use(testkit.Stall("/manifests/", nil))
			return "", nil
		}, errSilent.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := startRegistry(t), startRegistry(t)
			if _, err := tt.push(t, from); err != nil {
				t.Fatal(err)
			}
			config := Config{}
			if name == "silent" {
				config.silence = 300 * time.Millisecond
			}
			result := New(config).Copy(t.Context(), []Job{job(from, to, "team/app:v1")}, none)[0]
			if result.Err == nil || !strings.Contains(result.Err.Error(), tt.want) {
				t.Errorf("got %v, want %q", result.Err, tt.want)
			}
			for _, request := range to.Requests() {
				if request.Method != http.MethodGet && request.Method != http.MethodHead && !strings.Contains(request.Path, "/blobs/") {
					t.Errorf("the target was sent %v", request)
				}
			}
		})
	}
}

// Signatures that refer to each other in a circle are copied once.
func TestCircles(t *testing.T) {
	t.Parallel()
	from, to := startRegistry(t), startRegistry(t)
	pushed := image(t, from, "team/app:v1", "x")
	const kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
	refers := artifact(t, from, "team/app", kind, "bundle", subjectOf(imagespec.MediaTypeImageManifest, pushed))
	this := imagespec.Descriptor{MediaType: imagespec.MediaTypeImageManifest, Digest: digest.Digest(pushed), Size: 1}
	for subject, list := range map[string][]imagespec.Descriptor{pushed: {refers, this}, refers.Digest.String(): {refers, this}} {
		index := imagespec.Index{MediaType: imagespec.MediaTypeImageIndex, Manifests: list}
		index.SchemaVersion = 2
		if _, err := from.PushManifest(t.Context(), "team/app:"+tagOf(subject), index.MediaType, index); err != nil {
			t.Fatal(err)
		}
	}
	if result := copied(t, job(from, to, "team/app:v1"))[0]; result.Attached != 1 {
		t.Errorf("%d are attached", result.Attached)
	}
}

// Other machines are not asked without TLS unless that is said, and credentials stay here.
func TestWithoutTLS(t *testing.T) {
	t.Parallel()
	plain, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.0.0.1:5000/v2/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	next := roundTripper(func(*http.Request) (*http.Response, error) { return nil, os.ErrClosed })
	for insecure, want := range map[bool]bool{false: false, true: true} {
		through := &watched{at: endpoint{"10.0.0.1:5000", insecure}, next: next, silence: time.Minute}
		_, err := through.RoundTrip(plain)
		if sent := errors.Is(err, os.ErrClosed); sent != want {
			t.Errorf("insecure %t: sent is %t (%v)", insecure, sent, err)
		}
	}
	elsewhere := &watched{at: endpoint{"10.0.0.2", true}, next: next, silence: time.Minute}
	if _, err := elsewhere.RoundTrip(plain); errors.Is(err, os.ErrClosed) {
		t.Error("what is insecure led to another host, which was asked")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// A run that is interrupted ends, and says of each image that it is missing.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	from, to := startRegistry(t), startRegistry(t)
	from.Use(testkit.Stall("/manifests/", nil))
	ctx, end := context.WithCancel(t.Context())
	end()
	jobs := []Job{job(from, to, "team/a:v1"), job(from, to, "team/b:v1")}
	names := map[string]bool{}
	for _, one := range Missing(New(Config{}).Copy(ctx, jobs, none)) {
		names[one.Name] = true
	}
	if got := slices.Sorted(maps.Keys(names)); len(got) != 2 {
		t.Errorf("missing are %v", got)
	}
}
