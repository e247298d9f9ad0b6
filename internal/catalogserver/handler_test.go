package catalogserver_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// The lines of the catalog that tests of the HTTP API use. All of it is large
// enough to be compressed, and no line is but the last one.
var (
	linePackageP = `{"name":"p","schema":"olm.package"}` + "\n"
	lineStableP  = `{"name":"stable","package":"p","schema":"olm.channel"}` + "\n"
	lineP1       = `{"name":"p.v1","package":"p","schema":"olm.bundle"}` + "\n"
	lineNoSchema = `{"about":"nothing","name":"p.v1"}` + "\n"
	linePackageQ = `{"name":"q","schema":"olm.package"}` + "\n"
	lineStableQ  = `{"name":"stable","package":"q","schema":"olm.channel"}` + "\n"
	lineOdd      = `{"name":"a&b=c d/é","package":"q","schema":"olm.bundle"}` + "\n"
	lineP2       = `{"name":"p.v2","notes":"` + strings.Repeat("x", 2000) + `","package":"p","schema":"olm.bundle"}` + "\n"

	catalogLines = []string{linePackageP, lineStableP, lineP1, lineNoSchema, linePackageQ, lineStableQ, lineOdd, lineP2}
	catalogText  = strings.Join(catalogLines, "")
)

const (
	allPath   = "/catalogs/c/api/v1/all"
	metasPath = "/catalogs/c/api/v1/metas"
	storedAt  = "Sat, 01 Aug 2026 12:00:00 GMT"
	absent    = ""
)

// serveStore serves the store over HTTP until the test ends.
func serveStore(t testing.TB, s *catalogserver.Store) string {
	t.Helper()
	server := httptest.NewServer(catalogserver.Handler(s))
	t.Cleanup(server.Close)
	return server.URL
}

// serveCatalog serves the catalog of the tests as "c".
func serveCatalog(t *testing.T) string {
	t.Helper()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, s, "c", "1", files(map[string]string{"a": catalogText}))
	return serveStore(t, s)
}

// response is what came back.
type response struct {
	*http.Response

	body string
}

// do sends a request as it is, and returns the answer as it came.
func do(t testing.TB, method, url string, header map[string]string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range header {
		req.Header.Set(key, value)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp, string(body)}
}

// decoded returns the body without its coding.
func (r response) decoded(t *testing.T) string {
	t.Helper()
	var src io.Reader = strings.NewReader(r.body)
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		dec, err := gzip.NewReader(src)
		if err != nil {
			t.Fatal(err)
		}
		src = dec
	case "zstd":
		dec, err := zstd.NewReader(src)
		if err != nil {
			t.Fatal(err)
		}
		defer dec.Close()
		src = dec
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, src); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// exchange is a request to a catalog server and what is expected to come back.
type exchange struct {
	reason       string
	method, path string
	header       map[string]string
	status       int
	body         string
	want         map[string]string
}

func (e exchange) run(t *testing.T, base string) {
	t.Helper()
	method := e.method
	if method == "" {
		method = http.MethodGet
	}
	got := do(t, method, base+e.path, e.header)
	if got.StatusCode != e.status {
		t.Errorf("%s: got status %d, want %d", e.reason, got.StatusCode, e.status)
	}
	if diff := cmp.Diff(e.body, got.decoded(t)); diff != "" {
		t.Errorf("%s: body: -want +got\n%s", e.reason, diff)
	}
	for key, value := range e.want {
		if got := got.Header.Get(key); got != value {
			t.Errorf("%s: got %s %q, want %q", e.reason, key, got, value)
		}
	}
	if got.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("%s: got Vary %q", e.reason, got.Header.Get("Vary"))
	}
	if e.status >= 400 && e.status != http.StatusPreconditionFailed && !strings.HasPrefix(got.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s: got an error of type %q", e.reason, got.Header.Get("Content-Type"))
	}
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	base := serveCatalog(t)
	const unknown, none = "404 page not found\n", "404 Not Found\n"
	notAName := "invalid catalog name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, " +
		"'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
		`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')` + "\n"
	tests := map[string]exchange{
		"all": {
			path: allPath, status: 200, body: catalogText,
			want: map[string]string{
				"Content-Type": "application/jsonl", "Last-Modified": storedAt, "Accept-Ranges": "bytes",
				"ETag": `"` + sum(catalogText) + `"`, "Content-Encoding": absent,
			},
		},
		"all ignores parameters": {path: allPath + "?schema=x&foo=1&%zz", status: 200, body: catalogText},
		"metas": {
			path: metasPath, status: 200, body: catalogText,
			want: map[string]string{
				"Content-Type": "application/jsonl", "Last-Modified": storedAt, "Accept-Ranges": absent,
				"ETag": `"` + sum(catalogText) + `"`,
			},
		},
		"no content for all":   {path: "/catalogs/d/api/v1/all", status: 404, body: none},
		"no content for metas": {path: "/catalogs/d/api/v1/metas", status: 404, body: none},
		"no content for HEAD":  {method: http.MethodHead, path: "/catalogs/d/api/v1/all", status: 404},
		"unknown endpoint":     {path: "/catalogs/c/api/v1/other", status: 404, body: unknown},
		"graphql":              {method: http.MethodPost, path: "/catalogs/c/api/v1/graphql", status: 404, body: unknown},
		"trailing slash":       {path: allPath + "/", status: 404, body: unknown},
		"below an endpoint":    {path: metasPath + "/x", status: 404, body: unknown},
		"above":                {path: "/catalogs/c/api/v1", status: 404, body: unknown},
		"root":                 {path: "/", status: 404, body: unknown},
		"double slash": {
			path: "/catalogs/c//api/v1/all", status: 307,
			body: `<a href="/catalogs/c/api/v1/all">Temporary Redirect</a>.` + "\n\n",
			want: map[string]string{"Location": allPath},
		},
		"POST all":       {method: http.MethodPost, path: allPath, status: 405, body: "Method Not Allowed\n", want: map[string]string{"Allow": "GET, HEAD"}},
		"PUT metas":      {method: http.MethodPut, path: metasPath, status: 405, body: "Method Not Allowed\n"},
		"DELETE all":     {method: http.MethodDelete, path: allPath, status: 405, body: "Method Not Allowed\n"},
		"OPTIONS":        {method: http.MethodOptions, path: metasPath, status: 405, body: "Method Not Allowed\n"},
		"invalid name":   {path: "/catalogs/NOPE/api/v1/all", status: 400, body: notAName},
		"parent":         {path: "/catalogs/..%2Fc/api/v1/all", status: 400, body: notAName},
		"dots":           {path: "/catalogs/%2E%2E/api/v1/metas", status: 400, body: notAName},
		"absolute":       {path: "/catalogs/%2Fetc/api/v1/metas", status: 400, body: notAName},
		"hidden":         {path: "/catalogs/.c/api/v1/all", status: 400, body: notAName},
		"NUL":            {path: "/catalogs/c%00/api/v1/all", status: 400, body: notAName},
		"long name":      {path: "/catalogs/" + strings.Repeat("a", 254) + "/api/v1/all", status: 400, body: "invalid catalog name: must be no more than 253 characters\n"},
		"long query":     {path: metasPath + "?name=" + strings.Repeat("a", 8<<10), status: 414, body: "414 Request URI Too Long\n"},
		"longest query":  {path: metasPath + "?name=" + strings.Repeat("a", 8<<10-len("name=")), status: 200},
		"long all query": {path: allPath + "?" + strings.Repeat("a", 8<<10+1), status: 414, body: "414 Request URI Too Long\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, base)
		})
	}
}

func TestMetasParameters(t *testing.T) {
	t.Parallel()
	base := serveCatalog(t)
	const bad = "400 Bad Request\n"
	tests := map[string]exchange{
		"schema":            {path: "?schema=olm.channel", status: 200, body: lineStableP + lineStableQ},
		"package":           {path: "?package=p", status: 200, body: lineStableP + lineP1 + lineP2, reason: "the object of the package itself has no package"},
		"name":              {path: "?name=stable", status: 200, body: lineStableP + lineStableQ},
		"name, any schema":  {path: "?name=p.v1", status: 200, body: lineP1 + lineNoSchema},
		"schema and name":   {path: "?schema=olm.package&name=p", status: 200, body: linePackageP},
		"all three":         {path: "?name=stable&package=q&schema=olm.channel", status: 200, body: lineStableQ},
		"file order":        {path: "?schema=olm.bundle", status: 200, body: lineP1 + lineOdd + lineP2},
		"no such value":     {path: "?schema=olm.package&name=none", status: 200, body: ""},
		"no common object":  {path: "?schema=olm.package&package=p", status: 200, body: ""},
		"exact":             {path: "?schema=olm.chan", status: 200, body: ""},
		"case":              {path: "?schema=OLM.channel", status: 200, body: ""},
		"first value wins":  {path: "?name=p&name=q", status: 200, body: linePackageP},
		"first value empty": {path: "?schema=olm.package&name=&name=q", status: 200, body: linePackageP + linePackageQ},
		"empty":             {path: "?schema=&package=&name=", status: 200, body: catalogText},
		"without a value":   {path: "?schema", status: 200, body: catalogText},
		"no parameters":     {path: "?", status: 200, body: catalogText},
		"escaped":           {path: "?name=a%26b%3Dc+d%2F%C3%A9", status: 200, body: lineOdd},
		"length":            {path: "?schema=olm.channel", status: 200, body: lineStableP + lineStableQ, want: map[string]string{"Content-Length": "110"}},
		"empty length":      {path: "?name=none", status: 200, want: map[string]string{"Content-Length": "0", "Content-Type": "application/jsonl"}},
		"HEAD":              {method: http.MethodHead, path: "?schema=olm.channel", status: 200, want: map[string]string{"Content-Length": "110"}},
		"HEAD, bad":         {method: http.MethodHead, path: "?foo=1", status: 400},

		"another name":        {path: "?foo=1", status: 400, body: bad},
		"another name, empty": {path: "?foo", status: 400, body: bad},
		"a good and a bad":    {path: "?schema=olm.package&foo=1", status: 400, body: bad},
		"name in other case":  {path: "?Schema=olm.package", status: 400, body: bad},
		"nameless":            {path: "?=x", status: 400, body: bad},
		"bad escape":          {path: "?name=%zz", status: 400, body: bad, reason: "leaving it out would select more than was asked for"},
		"semicolon":           {path: "?schema=olm.package;name=p", status: 400, body: bad},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.path = metasPath + tt.path
			tt.run(t, base)
		})
	}
}

// Headers beyond what requests need are refused by the server, not read.
func TestServerBoundsHeaders(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	base := "http://" + start(t, catalogserver.ServerConfig{Handler: catalogserver.Handler(s)})
	// The server allows itself some more than it is told.
	got := do(t, http.MethodGet, base+allPath, map[string]string{"X-Long": strings.Repeat("x", 32<<10)})
	if got.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got status %d", got.StatusCode)
	}
}
