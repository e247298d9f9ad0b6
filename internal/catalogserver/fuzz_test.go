package catalogserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// FuzzMetas holds the answers to any query against what the catalog has.
func FuzzMetas(f *testing.F) {
	for _, raw := range []string{
		"", "schema=olm.bundle", "package=p&name=p.v1", "name=&name=q", "schema=olm.package&name=none", "foo=1",
		"name=a%26b%3Dc+d%2F%C3%A9", "name=%zz", "a;b", "=", "&&", "%73chema=olm.channel", "name=%00", "schema=olm.bundle&schema=%ff",
	} {
		f.Add(raw)
	}
	s, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Put(f.Context(), "c", origin("1"), files(map[string]string{"a": catalogText})); err != nil {
		f.Fatal(err)
	}
	handler := catalogserver.Handler(s)
	f.Fuzz(func(t *testing.T, raw string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, metasPath, nil)
		r.URL.RawQuery = raw
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, r)
		status, body := expected(t, raw)
		if rec.Code != status {
			t.Errorf("got status %d, want %d", rec.Code, status)
		}
		if diff := cmp.Diff(body, rec.Body.String()); diff != "" {
			t.Errorf("body: -want +got\n%s", diff)
		}
	})
}

// expected is what a query is to be answered with.
func expected(t *testing.T, raw string) (status int, body string) {
	t.Helper()
	if len(raw) > 8<<10 {
		return http.StatusRequestURITooLong, "414 Request URI Too Long\n"
	}
	values := map[string]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key, keyErr := url.QueryUnescape(key)
		value, valueErr := url.QueryUnescape(value)
		known := slices.Contains([]string{"schema", "package", "name"}, key)
		if keyErr != nil || valueErr != nil || !known || strings.Contains(pair, ";") {
			return http.StatusBadRequest, "400 Bad Request\n"
		}
		if _, given := values[key]; !given {
			values[key] = value
		}
	}
	q := catalogserver.Query{Schema: values["schema"], Package: values["package"], Name: values["name"]}
	return http.StatusOK, filter(t, catalogText, q)
}

// FuzzHandler sends any path and headers. Whatever comes back is the content,
// part of it, or one of the documented refusals.
func FuzzHandler(f *testing.F) {
	for _, seed := range [][5]string{
		{"GET", allPath, "", "", ""},
		{"HEAD", metasPath, "gzip", "*", ""},
		{"GET", allPath, "gzip;q=1, zstd;q=0.5", "", ""},
		{"GET", allPath, "zstd", `"x", W/"` + sum(catalogText) + `-zstd"`, ""},
		{"GET", allPath, "*;q=", `"a b", "`, "bytes=0-3,5-"},
		{"GET", "/catalogs/..%2F/api/v1/all", "", "", ""},
		{"GET", "/catalogs/c//api/v1/metas", "", "", "bytes=-1"},
		{"POST", allPath, "", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	s, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Put(f.Context(), "c", origin("1"), files(map[string]string{"a": catalogText})); err != nil {
		f.Fatal(err)
	}
	handler := catalogserver.Handler(s)
	statuses := []int{200, 206, 304, 307, 400, 404, 405, 412, 414, 416}
	f.Fuzz(func(t *testing.T, method, path, accept, tags, ranges string) {
		target, err := url.ParseRequestURI(path)
		if err != nil {
			t.Skip("no server hands this to a handler")
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Method, r.URL = method, target
		r.Header = http.Header{"Accept-Encoding": {accept}, "If-None-Match": {tags}, "If-Match": {tags}, "If-Range": {tags}, "Range": {ranges}}
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, r)
		if !slices.Contains(statuses, rec.Code) {
			t.Errorf("got status %d", rec.Code)
		}
		resp := rec.Result()
		if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.Contains(strings.ToLower(accept), coding) && !strings.Contains(accept, "*") {
			t.Errorf("got coding %q, which was not accepted", coding)
		}
		if rec.Code == http.StatusOK && method == http.MethodGet && strings.HasSuffix(target.Path, "/all") {
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := (response{resp, string(body)}).decoded(t); got != catalogText {
				t.Errorf("got %q", got)
			}
		}
	})
}
