package referrers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/referrers"
)

// page is an answer about referrers, and the link in its header.
type page struct {
	referrers   int
	link        string
	padding     int // bytes of an annotation
	status      int // 200 if it is 0
	unversioned bool
}

// TestWhole asks as who looks for signatures does.
func TestWhole(t *testing.T) {
	t.Parallel()
	const next = `</v2/pkg/referrers/%s?page=%d>; rel="next"`
	endless := func(int) page { return page{referrers: 1, link: next} }
	tests := map[string]struct {
		answer func(number int) page
		want   int
		fails  string
	}{
		"one":                  {answer: of(page{referrers: 2}), want: 2},
		"none":                 {answer: of(page{}), want: 0},
		"three":                {answer: of(page{referrers: 2, link: next}, page{referrers: 3, link: next}, page{referrers: 1}), want: 6},
		"without a version":    {answer: of(page{referrers: 2, link: next, unversioned: true}, page{referrers: 1}), want: 3},
		"the first is empty":   {answer: of(page{link: next}, page{referrers: 3}), want: 3},
		"a link to itself":     {answer: of(page{referrers: 2, link: `</v2/pkg/referrers/%s>; rel="self"`}), want: 2},
		"without a link":       {answer: of(page{referrers: 2, link: `next%.0s%.0d`}), want: 2},
		"unquoted, relative":   {answer: of(page{referrers: 2, link: `<?page=%[2]d>; rel=next`}, page{referrers: 1}), want: 3},
		"another host":         {answer: of(page{link: `<http://elsewhere.test/v2/pkg/referrers/%s?page=%d>; rel="next"`}), fails: `the next page is said to be at "elsewhere.test"`},
		"a page that is gone":  {answer: of(page{referrers: 1, link: next}, page{status: http.StatusNotFound}), fails: "the next page is no list of referrers: 404"},
		"pages without an end": {answer: endless, fails: "there are more than 64 pages"},
		"pages that are large": {answer: of(page{link: next, padding: 3 << 20}, page{padding: 3 << 20}), fails: "there are more than 4194304 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, tt.answer)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%v, want %s", err, tt.fails)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("%d referrers, %v, want %d", got, err, tt.want)
			}
		})
	}
}

// of gives one page after the other.
func of(pages ...page) func(int) page { return func(number int) page { return pages[number] } }

// ask gives how many referrers an image has, by the library of those who ask.
func ask(t *testing.T, answer func(int) page) (int, error) {
	t.Helper()
	subject := "sha256:" + strings.Repeat("a", 64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.Contains(req.URL.Path, "/referrers/") {
			return // it is a registry
		}
		number := 0
		_, _ = fmt.Sscan(req.URL.Query().Get("page"), &number) // without it, it is the first
		p := answer(number)
		index := imagespec.Index{MediaType: imagespec.MediaTypeImageIndex, Annotations: map[string]string{"p": strings.Repeat("p", p.padding)}}
		if !p.unversioned {
			index.SchemaVersion = 2
		}
		for i := range p.referrers {
			index.Manifests = append(index.Manifests, imagespec.Descriptor{
				MediaType: imagespec.MediaTypeImageManifest, Digest: digestOf(number, i), Size: 1,
			})
		}
		w.Header().Set("Content-Type", imagespec.MediaTypeImageIndex)
		if p.link != "" {
			w.Header().Set("Link", fmt.Sprintf(p.link, subject, number+1))
		}
		if p.status != 0 {
			w.WriteHeader(p.status)
		}
		_ = json.NewEncoder(w).Encode(index)
	}))
	t.Cleanup(server.Close)
	repository, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/pkg")
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Referrers(repository.Digest(subject), remote.WithContext(t.Context()), remote.WithTransport(referrers.Whole(http.DefaultTransport)))
	if err != nil {
		return 0, err
	}
	manifest, err := found.IndexManifest()
	if err != nil {
		return 0, err
	}
	return len(manifest.Manifests), nil
}

// digestOf is another one for each referrer.
func digestOf(page, number int) digest.Digest {
	return digest.NewDigestFromEncoded(digest.SHA256, fmt.Sprintf("%032x%032x", page, number))
}
