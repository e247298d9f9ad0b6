package catalogclient_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// benchmarkCatalog has a tenth of the largest public catalog. What all of it
// costs a process is measured by test/bench/catalogs.
func benchmarkCatalog() testkit.BigCatalog {
	c := testkit.PublicCatalog(1)
	c.Packages, c.Bundles, c.Bytes = c.Packages/10, c.Bundles/10, c.Bytes/10
	return c
}

// serve serves catalog and returns its server and its size in bytes.
func serve(b *testing.B, catalog testkit.BigCatalog) (*httptest.Server, int64) {
	b.Helper()
	var body bytes.Buffer
	size, err := catalog.WriteTo(&body)
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		if _, err := w.Write(body.Bytes()); err != nil {
			b.Error(err)
		}
	}))
	b.Cleanup(s.Close)
	return s, size
}

// BenchmarkRefresh reads a catalog over HTTP.
func BenchmarkRefresh(b *testing.B) {
	s, size := serve(b, benchmarkCatalog())
	c, err := catalogclient.New(catalogclient.Config{HTTPClient: s.Client(), Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		src := catalogclient.Source{Catalog: "c", Digest: strconv.Itoa(i), BaseURL: s.URL}
		if _, err := c.Refresh(b.Context(), src); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFloor does with encoding/json the least that reading a catalog takes.
func BenchmarkFloor(b *testing.B) {
	s, size := serve(b, benchmarkCatalog())
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			b.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			b.Fatal(err)
		}
		for dec := json.NewDecoder(resp.Body); err == nil; {
			var object struct {
				Schema  string `json:"schema"`
				Package string `json:"package"`
				Name    string `json:"name"`
			}
			err = dec.Decode(&object)
		}
		if closeErr := resp.Body.Close(); !errors.Is(err, io.EOF) || closeErr != nil {
			b.Fatal(err, closeErr)
		}
	}
}

// BenchmarkPackage looks up a package in catalogs of different sizes.
func BenchmarkPackage(b *testing.B) {
	for _, packages := range []int{10, 1_000, 50_000} {
		b.Run(fmt.Sprintf("of %d", packages), func(b *testing.B) {
			s, _ := serve(b, testkit.BigCatalog{Seed: 1, Packages: packages, Bundles: packages, Bytes: 1})
			c, err := catalogclient.New(catalogclient.Config{HTTPClient: s.Client(), Limits: catalogclient.Limits{KeptBytes: 1 << 30}})
			if err != nil {
				b.Fatal(err)
			}
			change, err := c.Refresh(b.Context(), catalogclient.Source{Catalog: "c", Digest: "d", BaseURL: s.URL})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if p, err := c.Package("c", change.Packages[i%packages]); p == nil || err != nil {
					b.Fatal(p, err)
				}
			}
		})
	}
}
