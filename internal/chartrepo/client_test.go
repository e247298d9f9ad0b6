package chartrepo_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterextensions/operator-controller/internal/chartrepo"
)

// serve starts a chart repository over TLS.
func serve(t *testing.T, handler http.Handler) (chartrepo.Client, *url.URL) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return chartrepo.Client{HTTP: server.Client()}, parse(t, server.URL)
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	address, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func anyVersion(t *testing.T) chartrepo.Range {
	t.Helper()
	versions, err := chartrepo.ParseRange("")
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

func has(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}

// TestRepository finds a chart in an index, and reads the archive and the file beside it, with the
// credentials of the address of the repository.
func TestRepository(t *testing.T) {
	t.Parallel()
	archive := []byte("archive")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stable/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "entries: {web: [{version: 1.0.0, digest: %s, urls: [web-1.0.0.tgz]}]}", digestOf(archive))
	})
	mux.HandleFunc("GET /stable/web-1.0.0.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	mux.HandleFunc("GET /stable/web-1.0.0.tgz.prov", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "signed") })
	client, repository := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	repository = repository.JoinPath("stable")
	if _, err := client.Find(t.Context(), repository, "web", anyVersion(t)); !has(err, "/stable/index.yaml: the server answers 401 Unauthorized") {
		t.Errorf("without credentials: error %v", err)
	}
	repository.User = url.UserPassword("me", "secret")
	chart, err := client.Find(t.Context(), repository, "web", anyVersion(t))
	if err != nil || chart.Version != "1.0.0" {
		t.Fatalf("got %v, %v", chart, err)
	}
	got, err := client.Archive(t.Context(), chart.Address)
	if err != nil || !bytes.Equal(got, archive) {
		t.Fatalf("the archive is %q: %v", got, err)
	}
	if err := chart.CheckDigest(got); err != nil {
		t.Error(err)
	}
	if file, err := client.Provenance(t.Context(), chart.Address); err != nil || string(file) != "signed" {
		t.Errorf("the provenance file is %q: %v", file, err)
	}
	if _, err := client.Find(t.Context(), repository, "db", anyVersion(t)); !has(err, `/stable/index.yaml: chart "db" is not in the index, which has "web"`) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// TestAnswers: what a server answers for a provenance file that it does not have is no error, and
// other answers are.
func TestAnswers(t *testing.T) {
	t.Parallel()
	client, server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscanf(strings.TrimSuffix(r.URL.Path, ".prov"), "/%d", &code)
		w.WriteHeader(code)
	}))
	for code, isMissing := range map[int]bool{403: true, 404: true, 410: true, 401: false, 429: false, 500: false, 503: false} {
		address := server.JoinPath(fmt.Sprint(code))
		file, err := client.Provenance(t.Context(), address)
		if file != nil || (err == nil) != isMissing {
			t.Errorf("%d: got %q, %v", code, file, err)
		}
		if _, err := client.Archive(t.Context(), address); !has(err, fmt.Sprintf("the server answers %d ", code)) {
			t.Errorf("%d: error %v", code, err)
		}
	}
}

// TestRedirects follows at most 10 redirects, and only to https. Another host receives no
// credentials and no query of the repository.
func TestRedirects(t *testing.T) {
	t.Parallel()
	store := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent := fmt.Sprint(r.URL, r.Header); strings.Contains(sent, "secret") || r.Header.Get("Authorization") != "" {
			t.Errorf("another host received %s", sent)
		}
		_, _ = io.WriteString(w, "archive")
	}))
	t.Cleanup(store.Close)
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request without TLS") }))
	t.Cleanup(plain.Close)
	to := map[string]string{
		"/moved": "/web.tgz", "/plain": plain.URL, "/file": "file:///etc/passwd", "/store": store.URL, "/signed": "http://store.example/web.tgz?signature=secret",
		"/around": "/around", "/hostile": "oci://host/\u202e" + strings.Repeat("x", 2000),
	}
	client, server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if target := to[r.URL.Path]; target != "" {
			http.Redirect(w, r, target, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "archive")
	}))
	for path, want := range map[string]string{
		"/moved":   "",
		"/store":   "",
		"/signed":  `the server redirects to "http://store.example/web.tgz": only`,
		"/plain":   "only redirects to https are followed",
		"/file":    `the server redirects to "file:///etc/passwd": only redirects to https are followed`,
		"/around":  "more than 10 redirects",
		"/hostile": "only redirects to https are followed",
	} {
		address := server.JoinPath(path)
		address.User, address.RawQuery = url.User("secret"), "token=secret"
		_, err := client.Archive(t.Context(), address)
		if !has(err, want) || err != nil && (len(err.Error()) > 400 || strings.Contains(err.Error(), "\u202e") || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// endless is a server that sends more than the bound.
type endless struct{ after int64 }

func (e *endless) Read(to []byte) (int, error) {
	if e.after -= int64(len(to)); e.after < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	for i := range to {
		to[i] = '\n'
	}
	return len(to), nil
}

func (e *endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(e)}, nil
}

// TestAnswersAreBounded reads no more of an index, of an archive and of a provenance file than
// they may have.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	address := parse(t, "https://charts.example/web-1.0.0.tgz")
	const slack = 1 << 20 // of the buffer that the answer is read to
	for name, test := range map[string]struct {
		read func(chartrepo.Client) error
		max  int64
	}{
		"an index": {func(c chartrepo.Client) error {
			_, err := c.Find(t.Context(), address, "web", anyVersion(t))
			return err
		}, 64 << 20},
		"an archive":        {func(c chartrepo.Client) error { _, err := c.Archive(t.Context(), address); return err }, chartrepo.MaxArchiveBytes},
		"a provenance file": {func(c chartrepo.Client) error { _, err := c.Provenance(t.Context(), address); return err }, chartrepo.MaxProvenanceBytes},
	} {
		err := test.read(chartrepo.Client{HTTP: &http.Client{Transport: &endless{after: test.max + slack}}})
		if !has(err, fmt.Sprintf("it has more than %d bytes", test.max)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// silent is a server that takes requests and never answers.
type silent struct{}

func (silent) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// dripping is a server that sends a byte each second.
type dripping struct{}

func (dripping) RoundTrip(request *http.Request) (*http.Response, error) {
	read := func(to []byte) (int, error) {
		select {
		case <-request.Context().Done():
			return 0, request.Context().Err()
		case <-time.After(time.Second):
			return copy(to, "x"), nil
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(reader(read))}, nil
}

type reader func(to []byte) (int, error)

func (r reader) Read(to []byte) (int, error) { return r(to) }

// TestTimeIsBounded waits for no server for longer than it may take, and ends with the command.
func TestTimeIsBounded(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]http.RoundTripper{"silent": silent{}, "dripping": dripping{}} {
		synctest.Test(t, func(t *testing.T) {
			client := chartrepo.Client{HTTP: &http.Client{Transport: server}}
			began := time.Now()
			_, err := client.Archive(t.Context(), parse(t, "https://charts.example/web-1.0.0.tgz"))
			if took := time.Since(began); !has(err, "the server did not send all of it within 5m0s") || took > 6*time.Minute {
				t.Errorf("%s: after %s: %v", name, took, err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := client.Archive(ended, parse(t, "https://charts.example/web-1.0.0.tgz")); !has(err, "context canceled") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestArchivesAreNotUnpacked: an archive is what the server sends, also if the server takes the
// archive for the encoding of a file.
func TestArchivesAreNotUnpacked(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	to := gzip.NewWriter(&archive)
	_, _ = io.WriteString(to, "tar")
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	client, server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(archive.Bytes())
	}))
	if got, err := client.Archive(t.Context(), server.JoinPath("web-1.0.0.tgz")); err != nil || !bytes.Equal(got, archive.Bytes()) {
		t.Errorf("got %q, %v", got, err)
	}
}
