package catalogsource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogsource"
)

const twoPackages = `{"schema":"olm.package","name":"p"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"registry.test/p:v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.package","name":"q"}
`

// A package is the same wherever its catalog is, and a server that can be asked for it sends
// nothing else.
func TestOnePackage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "c.json"), twoPackages)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		lines := strings.SplitAfter(twoPackages, "\n")
		switch r.URL.RequestURI() {
		case "/new/api/v1/metas?name=p&schema=olm.package":
			_, _ = io.WriteString(w, lines[0])
		case "/new/api/v1/metas?package=p":
			_, _ = io.WriteString(w, lines[1]+lines[2])
		case "/new/api/v1/metas?name=gone&schema=olm.package", "/new/api/v1/metas?package=gone":
		case "/old/api/v1/all":
			_, _ = io.WriteString(w, twoPackages)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	reader := &catalogsource.Reader{HTTP: server.Client()}
	for name, tt := range map[string]struct {
		source string
		asks   []string
	}{
		"a folder":             {source: dir},
		"a server":             {server.URL + "/new", []string{"/new/api/v1/metas?name=%s&schema=olm.package", "/new/api/v1/metas?package=%s"}},
		"a server without all": {server.URL + "/old", []string{"/old/api/v1/metas?name=%s&schema=olm.package", "/old/api/v1/all"}},
	} {
		source, err := catalogsource.Parse(tt.source)
		if err != nil {
			t.Fatal(err)
		}
		for pkg, want := range map[string]string{"p": "p.v1 1.0.0", "gone": ""} {
			asked = nil
			found, err := reader.Package(t.Context(), source, "c", pkg)
			got := ""
			if found != nil {
				got = found.Resolved.Bundles[0].Name + " " + found.Resolved.Bundles[0].Version
			}
			if err != nil || got != want {
				t.Errorf("%s: %s is %q (%v), want %q", name, pkg, got, err, want)
			}
			asks := slices.Clone(tt.asks)
			for i, ask := range asks {
				if strings.Contains(ask, "%s") {
					asks[i] = fmt.Sprintf(ask, pkg)
				}
			}
			if diff := cmp.Diff(asks, asked); diff != "" {
				t.Errorf("%s: asked for %s (-want +got)\n%s", name, pkg, diff)
			}
		}
	}
}

// endless are the objects of a package without end.
type endless struct{}

func (endless) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = ' '
	}
	return len(to), nil
}

func TestPackagesAreBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, endless{}) }))
	t.Cleanup(server.Close)
	source, err := catalogsource.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&catalogsource.Reader{HTTP: server.Client()}).Package(t.Context(), source, "c", "p")
	if _, tooLarge := errors.AsType[*catalogsource.TooLargeError](err); !tooLarge {
		t.Errorf("got %v", err)
	}
}

// silent is a server that takes requests and never answers.
type silent struct{}

func (silent) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func TestServersThatSayNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source, err := catalogsource.Parse("http://catalogs.test/c")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = (&catalogsource.Reader{HTTP: &http.Client{Transport: silent{}}}).Package(t.Context(), source, "c", "p")
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 3*time.Minute {
			t.Errorf("after %s: got %v", took, err)
		}
	})
}

// Whatever fails, an error names its catalog once.
func TestErrorsNameTheCatalogOnce(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(down.Close)
	broken := t.TempDir()
	write(t, filepath.Join(broken, "c.json"), `{"schema":"olm.package","name":"p"`)
	reader := &catalogsource.Reader{HTTP: down.Client()}
	for _, text := range []string{down.URL, broken} {
		source, err := catalogsource.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, summary := reader.Summary(t.Context(), source)
		_, pkg := reader.Package(t.Context(), source, "c", "p")
		for _, err := range []error{summary, pkg} {
			if err == nil || strings.Count(err.Error(), "catalog "+source.String()) != 1 {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
