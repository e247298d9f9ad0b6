package catalogclient_test

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// compressed returns body as gzip has it.
func compressed(t *testing.T, body io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// encoded answers with a body in an encoding that nobody asked for.
func encoded(t *testing.T, encoding, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("asked for encoding %q", got)
		}
		w.Header().Set("Content-Encoding", encoding)
		fmt.Fprint(w, body)
	}
}

// repeated is n bytes that are all the same.
func repeated(c byte, n int64) io.Reader { return io.LimitReader(endless(c), n) }

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestCompressedBodyIsRead(t *testing.T) {
	t.Parallel()
	body := packageP + channelP + bundleP
	for encoding, sent := range map[string]string{
		"gzip": compressed(t, strings.NewReader(body)), "GZIP": compressed(t, strings.NewReader(body)), "identity": body,
	} {
		s := newServer(t, encoded(t, encoding, sent))
		c := newClient(t, catalogclient.Config{})
		mustRefresh(t, c, s.source("d1"))
		if diff := cmp.Diff(wantP(), mustPackage(t, c, "p")); diff != "" {
			t.Errorf("%s: -want +got\n%s", encoding, diff)
		}
	}
}

func TestCompressedBodyIsBounded(t *testing.T) {
	t.Parallel()
	const limit, bomb = 2 << 20, 16 << 20
	limits := catalogclient.Limits{Content: fbc.Limits{StreamBytes: limit, ObjectBytes: limit / 2}}
	good := strings.NewReader(packageP)
	whole := compressed(t, strings.NewReader(packageP+channelP))
	tests := map[string]struct {
		encoding, body string
		match          func(error) bool
	}{
		"a bomb of space":   {"gzip", compressed(t, io.MultiReader(good, repeated(' ', bomb))), as[*fbc.LimitError]},
		"a bomb in a name":  {"gzip", compressed(t, io.MultiReader(strings.NewReader(`{"name":"`), repeated('x', bomb))), as[*fbc.LimitError]},
		"cut":               {"gzip", whole[:len(whole)-4], func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"damaged":           {"gzip", strings.Replace(whole, whole[len(whole)-8:], "checksum", 1), func(err error) bool { return errors.Is(err, gzip.ErrChecksum) }},
		"not compressed":    {"gzip", packageP + channelP, func(err error) bool { return errors.Is(err, gzip.ErrHeader) }},
		"another encoding":  {"zstd", whole, as[*catalogclient.EncodingError]},
		"several encodings": {"gzip, gzip", whole, as[*catalogclient.EncodingError]},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, encoded(t, tt.encoding, tt.body))
			c := newClient(t, catalogclient.Config{Limits: limits})
			if _, err := c.Refresh(t.Context(), s.source("d1")); err == nil || !tt.match(err) {
				t.Errorf("got error %v of another kind", err)
			}
		})
	}
}

// A body of any size is read no further than it may be.
func TestHugeBodyIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	const huge, limit = 1 << 30, 4 << 20
	const inFlight = 16 << 20 // what the kernel and both sides may hold
	tests := map[string]string{
		"objects":     bundleP,
		"one object":  strings.Repeat(`"x":{`, 20),
		"one string":  `{"name":"` + strings.Repeat("x", 1000),
		"space":       strings.Repeat(" \n", 500),
		"one comment": "#" + strings.Repeat("x", 1000),
		"separators":  strings.Repeat("---\n", 250),
		"YAML":        "name: x\n",
	}
	for name, block := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(huge))
				for sent.Load() < huge {
					n, err := io.WriteString(w, block)
					sent.Add(int64(n))
					if err != nil {
						return
					}
				}
			})
			c := newClient(t, catalogclient.Config{Limits: catalogclient.Limits{
				Content: fbc.Limits{StreamBytes: limit, ObjectBytes: limit / 2},
			}})
			_, err := c.Refresh(t.Context(), s.source("d1"))
			if _, ok := errors.AsType[*fbc.StreamError](err); !ok {
				t.Errorf("got error %v, want a *fbc.StreamError", err)
			}
			s.CloseClientConnections()
			if got := sent.Load(); got > limit+inFlight {
				t.Errorf("%d bytes were read", got)
			}
		})
	}
}

// packages returns a catalog of n packages.
func packages(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"schema":"olm.package","name":"package-%d"}`+"\n", i)
	}
	return b.String()
}

func TestManyPackages(t *testing.T) {
	t.Parallel()
	const many = 10_000
	s := newServer(t, content(packages(many)))
	c := newClient(t, catalogclient.Config{Dir: t.TempDir()})
	if change := mustRefresh(t, c, s.source("d1")); len(change.Packages) != many {
		t.Errorf("got %d packages, want %d", len(change.Packages), many)
	}
	for i := range many {
		if mustPackage(t, c, fmt.Sprintf("package-%d", i)) == nil {
			t.Fatalf("package %d is missing", i)
		}
	}
	s.set(content(packages(many) + bundleP))
	if diff := cmp.Diff([]string{"p"}, mustRefresh(t, c, s.source("d2")).Packages); diff != "" {
		t.Errorf("changed packages: -want +got\n%s", diff)
	}
}

func TestManyVersions(t *testing.T) {
	t.Parallel()
	const many = 5_000
	var body, entries strings.Builder
	for i := range many {
		fmt.Fprintf(&body, `{"schema":"olm.bundle","package":"p","name":"p.v1.%d.0","image":"r/p:%[1]d","properties":[{"type":"olm.package","value":{"version":"1.%[1]d.0"}}]}`+"\n", i)
		fmt.Fprintf(&entries, `{"name":"p.v1.%d.0","replaces":"p.v1.%d.0"},`, i, i-1)
	}
	fmt.Fprintf(&body, `{"schema":"olm.channel","package":"p","name":"c","entries":[%s]}`, strings.TrimSuffix(entries.String(), ","))
	s := newServer(t, content(body.String()))
	c := newClient(t, catalogclient.Config{Dir: t.TempDir()})
	mustRefresh(t, c, s.source("d1"))
	p := mustPackage(t, c, "p")
	if len(p.Bundles) != many || len(p.Channels) != 1 || len(p.Channels[0].Entries) != many {
		t.Fatalf("got %d bundles and %d channels", len(p.Bundles), len(p.Channels))
	}
	last := p.Channels[0].Entries[many-1]
	if diff := cmp.Diff(resolve.Entry{Name: "p.v1.4999.0", Replaces: "p.v1.4998.0"}, last); diff != "" {
		t.Errorf("last entry: -want +got\n%s", diff)
	}
}

// B-50: a catalog behind a certificate that nobody knows is read as soon as the
// authority is there.
func TestRefreshTrustsLaterCertificates(t *testing.T) {
	t.Parallel()
	tlsServer := httptest.NewTLSServer(content(packageP))
	t.Cleanup(tlsServer.Close)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.pem"), unrelatedCertificate(t))
	httpClient, err := catalogclient.NewHTTPClient(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	c := newClient(t, catalogclient.Config{HTTPClient: httpClient})
	src := catalogclient.Source{Catalog: "c", Digest: "d1", BaseURL: tlsServer.URL + "/catalogs/c"}
	_, err = c.Refresh(t.Context(), src)
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
		t.Errorf("got %v, want an x509.UnknownAuthorityError", err)
	}
	write(t, filepath.Join(dir, "b.pem"), certificate(tlsServer))
	mustRefresh(t, c, src)
	if mustPackage(t, c, "p") == nil {
		t.Error("the package is missing")
	}
}

// While the content of a new digest arrives, that of the old one answers, at
// every moment and as a whole.
func TestOldContentAnswersThroughout(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(packageP+`{"schema":"olm.bundle","package":"p","name":"new"}`+"\n"+packageQ, "\n")
	sent, checked := make(chan struct{}), make(chan struct{})
	s := newServer(t, content(packageP+channelP+bundleP))
	c := newClient(t, catalogclient.Config{Dir: t.TempDir()})
	mustRefresh(t, c, s.source("d1"))
	s.set(func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range lines {
			fmt.Fprint(w, line)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			sent <- struct{}{}
			<-checked
		}
	})
	done := make(chan error, 1)
	go func() {
		_, err := c.Refresh(t.Context(), s.source("d2"))
		done <- err
	}()
	for range lines {
		<-sent
		if diff := cmp.Diff(wantP(), mustPackage(t, c, "p")); diff != "" || c.Digest("c") != "d1" {
			t.Errorf("digest %q, package -want +got\n%s", c.Digest("c"), diff)
		}
		checked <- struct{}{}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want := &resolve.Package{Name: "p", Bundles: []resolve.Bundle{{Name: "new"}}}
	if diff := cmp.Diff(want, mustPackage(t, c, "p")); diff != "" || c.Digest("c") != "d2" {
		t.Errorf("digest %q, package -want +got\n%s", c.Digest("c"), diff)
	}
}
