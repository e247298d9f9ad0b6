package catalogclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

const (
	packageP = `{"schema":"olm.package","name":"p","defaultChannel":"alpha"}` + "\n"
	channelP = `{"schema":"olm.channel","package":"p","name":"alpha","entries":[{"name":"p.v1.0.0"},{"name":"p.v1.1.0","replaces":"p.v1.0.0","skips":["p.v1.0.1"],"skipRange":"<1.1.0"}]}` + "\n"
	bundleP  = `{"schema":"olm.bundle","package":"p","name":"p.v1.1.0","image":"registry.test/p:v1.1.0","properties":[` +
		`{"type":"olm.bundle.object","value":{"data":"QUJD"}},` +
		`{"type":"olm.package","value":{"packageName":"p","version":"1.1.0"}},` +
		`{"type":"olm.csv.metadata","value":{"displayName":"P"}},` +
		`{"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"A"}},` +
		`{"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"B"}}]}` + "\n"
	packageQ = `{"schema":"olm.package","name":"q"}` + "\n"
)

func wantP() *resolve.Package {
	return &resolve.Package{
		Name: "p",
		Channels: []resolve.Channel{{Name: "alpha", Entries: []resolve.Entry{
			{Name: "p.v1.0.0"},
			{Name: "p.v1.1.0", Replaces: "p.v1.0.0", Skips: &resolve.Skips{Bundles: []string{"p.v1.0.1"}, Range: "<1.1.0"}},
		}}},
		Bundles: []resolve.Bundle{{
			Name: "p.v1.1.0", Version: "1.1.0", Image: "registry.test/p:v1.1.0",
			Facts: &resolve.Facts{Properties: []*requirement.Property{
				{Type: "olm.gvk.required", Value: []byte(`{"group":"g","version":"v1","kind":"A"}`)},
				{Type: "olm.gvk.required", Value: []byte(`{"group":"g","version":"v1","kind":"B"}`)},
			}},
		}},
	}
}

// server is a catalog server whose answer can be replaced.
type server struct {
	*httptest.Server
	requests atomic.Int64
	answer   atomic.Pointer[http.HandlerFunc]
}

func newServer(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.set(answer)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) set(answer http.HandlerFunc) { s.answer.Store(&answer) }

func (s *server) source(digest string) catalogclient.Source {
	return catalogclient.Source{Catalog: "c", Digest: digest, BaseURL: s.URL + "/catalogs/c"}
}

// content answers with a whole catalog at the one path there is.
func content(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/catalogs/c/api/v1/all" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, body)
	}
}

// raw answers with bytes as they are and closes the connection.
func raw(t *testing.T, response string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := buf.WriteString(response); err != nil {
			t.Error(err)
		}
		buf.Flush()
	}
}

func newClient(t *testing.T, cfg catalogclient.Config) *catalogclient.Client {
	t.Helper()
	if cfg.HTTPClient == nil {
		httpClient, err := catalogclient.NewHTTPClient("")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(httpClient.CloseIdleConnections)
		cfg.HTTPClient = httpClient
	}
	c, err := catalogclient.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustRefresh(t *testing.T, c *catalogclient.Client, src catalogclient.Source) catalogclient.Change {
	t.Helper()
	change, err := c.Refresh(t.Context(), src)
	if err != nil {
		t.Fatalf("refresh: %v", err)
	}
	if change.CopyErr != nil {
		t.Fatalf("copy: %v", change.CopyErr)
	}
	return change
}

func mustPackage(t *testing.T, c *catalogclient.Client, name string) *resolve.Package {
	t.Helper()
	p, err := c.Package("c", name)
	if err != nil {
		t.Fatalf("package %q: %v", name, err)
	}
	return p
}

func TestRefreshReadsPackages(t *testing.T) {
	t.Parallel()
	s := newServer(t, content(packageP+channelP+bundleP+packageQ))
	c := newClient(t, catalogclient.Config{Dir: t.TempDir()})

	if got := c.Digest("c"); got != "" {
		t.Errorf("got digest %q before the first refresh", got)
	}
	change := mustRefresh(t, c, s.source("d1"))
	if diff := cmp.Diff([]string{"p", "q"}, change.Packages); diff != "" {
		t.Errorf("changed packages: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(wantP(), mustPackage(t, c, "p")); diff != "" {
		t.Errorf("package: -want +got\n%s", diff)
	}
	if got := mustPackage(t, c, "r"); got != nil {
		t.Errorf("got %v for a package that the catalog does not have", got)
	}
	if got := c.Digest("c"); got != "d1" {
		t.Errorf("got digest %q, want d1", got)
	}
}

func TestRefreshMakesNoRequestForHeldContent(t *testing.T) {
	t.Parallel()
	s := newServer(t, content(packageP))
	c := newClient(t, catalogclient.Config{})
	mustRefresh(t, c, s.source("d1"))
	if change := mustRefresh(t, c, s.source("d1")); len(change.Packages) != 0 {
		t.Errorf("got changes %v", change.Packages)
	}
	if got := s.requests.Load(); got != 1 {
		t.Errorf("got %d requests, want 1", got)
	}
}

func TestRefreshReportsWhatChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t, content(packageP+channelP+packageQ+`{"schema":"olm.package","name":"gone"}`))
	dir := t.TempDir()
	c := newClient(t, catalogclient.Config{Dir: dir})
	mustRefresh(t, c, s.source("d1"))
	// What is compared after a restart comes from disk, and must not look changed.
	c = newClient(t, catalogclient.Config{Dir: dir})
	q := mustPackage(t, c, "q")
	s.set(content(packageQ + channelP + packageP + bundleP + `{"schema":"olm.package","name":"new"}`))
	change := mustRefresh(t, c, s.source("d2"))
	if mustPackage(t, c, "q") != q {
		t.Error("an unchanged package is another one")
	}
	if diff := cmp.Diff([]string{"gone", "new", "p"}, change.Packages); diff != "" {
		t.Errorf("changed packages: -want +got\n%s", diff)
	}
}

// as reports whether err is or wraps an E.
func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// TestYAMLIsBoundedByDefault: a document of YAML takes far more memory than its size,
// one of JSON does not.
func TestYAMLIsBoundedByDefault(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	s := newServer(t, content(`{"schema":"s","name":"n","text":"`+long+`"}`))
	c := newClient(t, catalogclient.Config{})
	mustRefresh(t, c, s.source("d1"))
	s.set(content("schema: s\nname: n\ntext: " + long))
	_, err := c.Refresh(t.Context(), s.source("d2"))
	if limit, ok := errors.AsType[*fbc.LimitError](err); !ok || limit.What != "YAML document bytes" || limit.Limit != 1<<20 {
		t.Errorf("err = %v, want a bound of 1 MiB", err)
	}
}

// B-02: an empty or truncated body is not a catalog. B-40: the last
// good content stays, and a failure is tried again.
func TestFailedRefreshKeepsLastGoodContent(t *testing.T) {
	t.Parallel()
	const good = packageP + channelP + bundleP
	half := packageP + channelP
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	tests := map[string]struct {
		answer http.HandlerFunc
		match  func(error) bool
	}{
		"cut inside an object": {raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+half+`{"sch`), as[*fbc.StreamError]},
		"cut between objects":  {raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+half), as[*fbc.StreamError]},
		"chunks cut between objects": {
			raw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(half), half)), as[*fbc.StreamError],
		},
		"no length": {raw(t, "HTTP/1.0 200 OK\r\n\r\n"+half), is(catalogclient.ErrUnknownLength)},
		"a length too small": {
			raw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(half)-10, half)), as[*fbc.StreamError],
		},
		"nothing":        {content(""), is(catalogclient.ErrEmptyCatalog)},
		"only space":     {content("\n\n"), is(catalogclient.ErrEmptyCatalog)},
		"no content":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, as[*catalogclient.StatusError]},
		"not found":      {http.NotFound, as[*catalogclient.StatusError]},
		"server error":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sorry", 500) }, as[*catalogclient.StatusError]},
		"not modified":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, as[*catalogclient.StatusError]},
		"endless detour": {http.RedirectHandler("/again", http.StatusFound).ServeHTTP, func(err error) bool { return strings.Contains(err.Error(), "redirects") }},
		"a web page":     {content("<html><body>Please log in: \t</body></html>"), is(catalogclient.ErrEmptyCatalog)},
		"garbage at the end": {
			content(half + "]"), as[*fbc.StreamError],
		},
		"object too large":    {content(half + `{"name":"` + strings.Repeat("x", 2<<10) + `"}`), as[*fbc.LimitError]},
		"body too large":      {content(strings.Repeat(half, 200)), as[*fbc.LimitError]},
		"index too large":     {content(half + fmt.Sprintf(`{"schema":"olm.channel","package":"p","name":"c","entries":[%s{}]}`, strings.Repeat("{},", 400))), as[*fbc.LimitError]},
		"nobody's bad object": {content(half + `{"schema":"olm.package","name":12345}`), as[*fbc.ObjectError]},
		"silence before the answer": {func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, as[*catalogclient.StalledError]},
		"silence within the body": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, half)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, as[*catalogclient.StalledError]},
		"a trickle": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}, as[*catalogclient.StalledError]},
	}
	limits := catalogclient.Limits{
		Content:   fbc.Limits{StreamBytes: 32 << 10, ObjectBytes: 2 << 10},
		KeptBytes: 16 << 10,
		Idle:      time.Second,
		Total:     2 * time.Second,
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, content(good))
			dir := t.TempDir()
			c := newClient(t, catalogclient.Config{Dir: dir, Limits: limits})
			mustRefresh(t, c, s.source("d1"))
			s.set(tt.answer)
			_, err := c.Refresh(t.Context(), s.source("d2"))
			if err == nil || !tt.match(err) {
				t.Fatalf("got error %v of another kind", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("message has several lines: %q", err)
			}
			for when, c := range map[string]*catalogclient.Client{"now": c, "after a restart": newClient(t, catalogclient.Config{Dir: dir})} {
				if diff := cmp.Diff(wantP(), mustPackage(t, c, "p")); diff != "" || c.Digest("c") != "d1" {
					t.Errorf("%s: digest %q, package -want +got\n%s", when, c.Digest("c"), diff)
				}
			}
			s.set(content(packageQ))
			mustRefresh(t, c, s.source("d2"))
			if got := c.Digest("c"); got != "d2" {
				t.Errorf("got digest %q once the server recovered", got)
			}
		})
	}
}

func TestStatusErrorText(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 Not\x01 Found\nsecond", 404) })
	c := newClient(t, catalogclient.Config{})
	_, err := c.Refresh(t.Context(), s.source("d1"))
	const want = "error: received unexpected response status code 404"
	if err == nil || err.Error() != want+": 404 Not Found" {
		t.Errorf("got %v, want %q and what the server said", err, want)
	}
	var notLoaded *catalogclient.NotLoadedError
	_, err = c.Package("c", "p")
	if !errors.As(err, &notLoaded) || err.Error() != `error retrieving cache for catalog "c": `+want+": 404 Not Found" {
		t.Errorf("got %v from Package", err)
	}
}

func TestRefreshFollowsRedirects(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.set(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			fmt.Fprint(w, packageP)
			return
		}
		http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
	})
	c := newClient(t, catalogclient.Config{})
	mustRefresh(t, c, s.source("d1"))
}

// B-37: however long it takes, a body that keeps coming is read.
func TestSlowBodyIsRead(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range strings.SplitAfter(strings.Repeat(packageP, 10), "\n") {
			fmt.Fprint(w, line)
			w.(http.Flusher).Flush()
			time.Sleep(150 * time.Millisecond)
		}
	})
	c := newClient(t, catalogclient.Config{Limits: catalogclient.Limits{Idle: time.Second}})
	mustRefresh(t, c, s.source("d1"))
}

func TestPackageOfUnknownCatalog(t *testing.T) {
	t.Parallel()
	c := newClient(t, catalogclient.Config{})
	var notLoaded *catalogclient.NotLoadedError
	_, err := c.Package("c", "p")
	if !errors.As(err, &notLoaded) || err.Error() != `cache for catalog "c" not found` {
		t.Errorf("got %v, want a *NotLoadedError", err)
	}
}

func TestRefreshRefusesSources(t *testing.T) {
	t.Parallel()
	c := newClient(t, catalogclient.Config{})
	for name, src := range map[string]catalogclient.Source{
		"no catalog":   {Digest: "d", BaseURL: "http://localhost"},
		"no digest":    {Catalog: "c", BaseURL: "http://localhost"},
		"no URL":       {Catalog: "c", Digest: "d"},
		"bad URL":      {Catalog: "c", Digest: "d", BaseURL: "http://[::1"},
		"other scheme": {Catalog: "c", Digest: "d", BaseURL: "file:///etc"},
	} {
		if _, err := c.Refresh(t.Context(), src); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCancelledRefreshIsNoFailure(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})
	c := newClient(t, catalogclient.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := c.Refresh(ctx, s.source("d1")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	var notLoaded *catalogclient.NotLoadedError
	if _, err := c.Package("c", "p"); !errors.As(err, &notLoaded) || notLoaded.Err != nil {
		t.Errorf("got %v, want a *NotLoadedError without cause", err)
	}
}

// B-39: what is forgotten is gone, on disk too.
func TestForget(t *testing.T) {
	t.Parallel()
	s := newServer(t, content(packageP))
	dir := t.TempDir()
	c := newClient(t, catalogclient.Config{Dir: dir})
	mustRefresh(t, c, s.source("d1"))
	if diff := cmp.Diff([]string{"c"}, c.Catalogs()); diff != "" {
		t.Errorf("catalogs: -want +got\n%s", diff)
	}
	for range 2 {
		if err := c.Forget("c"); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Digest("c"); got != "" {
		t.Errorf("still has digest %q", got)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left files %v", got)
	}
	if got := newClient(t, catalogclient.Config{Dir: dir}).Catalogs(); len(got) != 0 {
		t.Errorf("catalogs %v came back", got)
	}
}

func TestForgetDuringRefresh(t *testing.T) {
	t.Parallel()
	started, proceed := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-proceed
		fmt.Fprint(w, packageP)
	})
	dir := t.TempDir()
	c := newClient(t, catalogclient.Config{Dir: dir})
	go func() {
		defer close(proceed)
		<-started
		if err := c.Forget("c"); err != nil {
			t.Error(err)
		}
	}()
	if _, err := c.Refresh(t.Context(), s.source("d1")); !errors.Is(err, catalogclient.ErrForgotten) {
		t.Errorf("got %v, want ErrForgotten", err)
	}
	if got := files(t, dir); len(got) != 0 || len(c.Catalogs()) != 0 {
		t.Errorf("left files %v and catalogs %v", got, c.Catalogs())
	}
}

// B-85: readers and refreshes do not disturb each other.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newServer(t, content(packageP+channelP+bundleP))
	c := newClient(t, catalogclient.Config{Dir: t.TempDir()})
	mustRefresh(t, c, s.source("d"))
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 25 {
				if _, err := c.Refresh(t.Context(), s.source(fmt.Sprint("d", worker, i))); err != nil {
					t.Error(err)
				}
				if p, err := c.Package("c", "p"); err != nil || p == nil {
					t.Errorf("package is gone: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// B-38, B-46, B-84, B-95: nothing adds up.
//
//nolint:paralleltest // it measures the whole process
func TestManyRefreshesLeaveNothingBehind(t *testing.T) {
	s := newServer(t, content(packageP+channelP+bundleP))
	dir := t.TempDir()
	c := newClient(t, catalogclient.Config{Dir: dir})
	refresh := func(n int) {
		for i := range n {
			if i%3 == 0 {
				s.set(raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+packageP))
			} else {
				s.set(content(packageP + channelP + bundleP + strings.Repeat(" ", i)))
			}
			// Every third one fails, as it should.
			_, _ = c.Refresh(t.Context(), s.source(fmt.Sprintf("%04d-%04d", n, i)))
		}
	}
	refresh(100)
	memory, goroutines, open, disk := heap(), runtime.NumGoroutine(), descriptors(t), size(t, dir)
	refresh(1000)
	if got := heap(); got > memory+1<<20 {
		t.Errorf("memory grew from %d to %d bytes", memory, got)
	}
	if got := runtime.NumGoroutine(); got > goroutines+5 {
		t.Errorf("goroutines grew from %d to %d", goroutines, got)
	}
	if got := descriptors(t); got > open+5 {
		t.Errorf("descriptors grew from %d to %d", open, got)
	}
	if got := size(t, dir); got > disk || len(files(t, dir)) != 1 {
		t.Errorf("the disk grew from %d to %d bytes in files %v, want one", disk, got, files(t, dir))
	}
}

// descriptors returns how many files and sockets this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// size returns the size of all files below dir in bytes.
func size(t *testing.T, dir string) int64 {
	t.Helper()
	var sum int64
	for _, path := range files(t, dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

//nolint:paralleltest // it measures the whole process
func TestReadingDoesNotAllocate(t *testing.T) {
	s := newServer(t, content(packages(1000)+packageP+channelP+bundleP))
	c := newClient(t, catalogclient.Config{})
	mustRefresh(t, c, s.source("d1"))
	allocs := testing.AllocsPerRun(100, func() {
		if p, err := c.Package("c", "p"); p == nil || err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("got %v allocations", allocs)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// What is known to be wrong is no content that comes soon.
func TestNotYet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"never tried":    {want: true},
		"not there yet":  {err: &catalogclient.StatusError{Code: http.StatusNotFound}, want: true},
		"no connection":  {err: errors.New("connection refused"), want: true},
		"too much":       {err: fmt.Errorf("reading: %w", &fbc.LimitError{What: "objects", Limit: 1})},
		"no catalog":     {err: &fbc.StreamError{Err: errors.New("no JSON")}},
		"nothing in it":  {err: catalogclient.ErrEmptyCatalog},
		"another coding": {err: &catalogclient.EncodingError{Encoding: "br"}},
	} {
		if got := (&catalogclient.NotLoadedError{Catalog: "c", Err: tt.err}).NotYet(); got != tt.want {
			t.Errorf("%s: not yet is %t", name, got)
		}
	}
}
