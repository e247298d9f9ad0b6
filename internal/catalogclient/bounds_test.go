package catalogclient_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// sizedCatalog takes some size bytes in memory.
func sizedCatalog(size int) string {
	var b strings.Builder
	for i := range size / 1000 {
		fmt.Fprintf(&b, `{"schema":"olm.bundle","package":"p","name":"b%d","image":"%s"}`, i, strings.Repeat("x", 700))
	}
	return packageP + b.String()
}

// TestAllIndexesAreBounded: large catalogs share what there is, first come first
// served. None of them loses what it has, and a small one needs no place.
func TestAllIndexesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits := catalogclient.Limits{AllKeptBytes: 300_000, SmallBytes: 50_000}
	c := newClient(t, catalogclient.Config{Dir: dir, Limits: limits})
	s := newServer(t, nil)
	refresh := func(catalog, digest string, size int) error {
		s.set(content(sizedCatalog(size)))
		src := s.source(digest)
		src.Catalog = catalog
		_, err := c.Refresh(t.Context(), src)
		return err
	}
	must := func(catalog, digest string, size int) {
		t.Helper()
		if err := refresh(catalog, digest, size); err != nil || c.Digest(catalog) != digest {
			t.Errorf("%s: digest %q, %v", catalog, c.Digest(catalog), err)
		}
	}
	refuse := func(catalog string, size int) {
		t.Helper()
		before := c.Digest(catalog)
		err := refresh(catalog, "refused", size)
		limit, ok := errors.AsType[*fbc.LimitError](err)
		if !ok || limit.What != "bytes of the indexes of all large catalogs" || c.Digest(catalog) != before {
			t.Errorf("%s: digest %q, error %v", catalog, c.Digest(catalog), err)
		}
	}
	must("first", "1", 100_000)
	must("second", "1", 100_000)
	refuse("third", 200_000)
	refuse("second", 250_000)
	must("small", "1", 10_000)
	must("second", "2", 110_000)

	c = newClient(t, catalogclient.Config{Dir: dir, Limits: limits})
	refuse("third", 200_000)
	must("small", "2", 10_000)
	if err := c.Forget("first"); err != nil {
		t.Fatal(err)
	}
	must("third", "1", 100_000)
}

// TestCopiesAreBounded: what has no place on disk is in use without a copy, and the
// copies of others stay.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The copies may take twice as much.
	limits := catalogclient.Limits{KeptBytes: 100_000, AllKeptBytes: 125_000, SmallBytes: 100_000}
	c := newClient(t, catalogclient.Config{Dir: dir, Limits: limits})
	long := strings.Repeat("x", 1000)
	// A name that comes up in each entry takes memory once.
	repeated := func(entries int) string {
		entry := fmt.Sprintf(`{"name":%q},`, long)
		return fmt.Sprintf(`{"schema":"olm.channel","package":"p","name":"c","entries":[%s{"name":%q}]}`, strings.Repeat(entry, entries-1), long)
	}
	s := newServer(t, nil)
	refresh := func(catalog string, entries int) error {
		t.Helper()
		s.set(content(repeated(entries)))
		src := s.source("d")
		src.Catalog = catalog
		change, err := c.Refresh(t.Context(), src)
		if err != nil || c.Digest(catalog) != "d" {
			t.Errorf("%s: digest %q, %v", catalog, c.Digest(catalog), err)
		}
		return change.CopyErr
	}
	isLimit := func(err error) bool {
		_, ok := errors.AsType[*fbc.LimitError](err)
		return ok
	}
	if err := refresh("first", 150); err != nil {
		t.Error(err)
	}
	if err := refresh("alone too large", 250); !isLimit(err) {
		t.Errorf("beyond the bound of one: %v", err)
	}
	if err := refresh("too large with the first", 150); !isLimit(err) {
		t.Errorf("beyond the bound of all: %v", err)
	}
	if got := size(t, dir); got > 250_000 {
		t.Errorf("the copies take %d bytes", got)
	}
	if got := newClient(t, catalogclient.Config{Dir: dir, Limits: limits}).Catalogs(); len(got) != 1 || got[0] != "first" {
		t.Errorf("after a restart there are %v", got)
	}
}
