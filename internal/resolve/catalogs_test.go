package resolve_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

var errDown = errors.New("down")

func down(name string, priority int32) resolve.Catalog {
	return resolve.Catalog{Name: name, Priority: priority, Err: errDown}
}

func TestUnreadableCatalogs(t *testing.T) {
	t.Parallel()
	good := catalog("good", 0, pkg(channel("c", entry("1.0.0"), entry("1.1.0", r("1.0.0")))))
	outdated := catalog("good", 0, pkg(channel("c", entry("1.0.0")), deprecated("1.0.0")))
	tests := map[string]struct {
		reason    string
		catalogs  []resolve.Catalog
		installed *bundle.Identity
		want      string   // version
		unblocked []string // Resolution.Unreadable
		blocking  []string // Error.Catalogs
		withheld  string   // Error.Bundle, version
	}{
		"lower priority":            {reason: "it could not win, and is not told of", catalogs: []resolve.Catalog{down("x", -1), good}, want: "1.1.0"},
		"same priority":             {reason: "it could not win either", catalogs: []resolve.Catalog{down("x", 0), good}, want: "1.1.0"},
		"same, staying":             {reason: "it could not win either", catalogs: []resolve.Catalog{down("x", 0), good}, installed: installed("1.1.0"), want: "1.1.0"},
		"higher priority":           {reason: "it could win", catalogs: []resolve.Catalog{down("x", 1), good}, blocking: []string{"x"}, withheld: "1.1.0"},
		"higher, staying":           {reason: "it could have an upgrade", catalogs: []resolve.Catalog{down("x", 1), good}, installed: installed("1.1.0"), blocking: []string{"x"}, withheld: "1.1.0"},
		"some in the way":           {reason: "only those are named", catalogs: []resolve.Catalog{down("low", -1), down("y", 2), good, down("x", 1)}, blocking: []string{"x", "y"}, withheld: "1.1.0"},
		"none left":                 {reason: "any could have it", catalogs: []resolve.Catalog{down("y", 0), down("x", -9), {Name: "without"}}, blocking: []string{"x", "y"}},
		"nothing suitable":          {reason: "any could have an edge", catalogs: []resolve.Catalog{down("x", -9), good}, installed: installed("0.1.0"), blocking: []string{"x"}},
		"deprecated":                {reason: "a bundle that is not deprecated wins from any catalog", catalogs: []resolve.Catalog{down("x", -1), outdated}, blocking: []string{"x"}, withheld: "1.0.0"},
		"deprecated, staying":       {reason: "staying does no harm, but there might be a way out", catalogs: []resolve.Catalog{down("x", 0), outdated}, installed: installed("1.0.0"), want: "1.0.0", unblocked: []string{"x"}},
		"deprecated, higher":        {reason: "the catalog that should decide is missing", catalogs: []resolve.Catalog{down("x", 1), outdated}, installed: installed("1.0.0"), blocking: []string{"x"}, withheld: "1.0.0"},
		"deprecated, other content": {reason: "a bundle of another name is not what is installed", catalogs: []resolve.Catalog{down("x", 0), outdated}, installed: &bundle.Identity{Package: "p", Name: "other", Version: "1.0.0"}, blocking: []string{"x"}, withheld: "1.0.0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := resolve.Resolve(resolve.Request{Package: "p", Installed: tc.installed}, tc.catalogs)
			if tc.blocking == nil {
				if err != nil || got.Identity.Version != tc.want {
					t.Fatalf("Resolve() = %v, %v; want %s: %s", got.Identity, err, tc.want, tc.reason)
				}
				if diff := cmp.Diff(tc.unblocked, got.Unreadable); diff != "" {
					t.Errorf("Unreadable (-want +got):\n%s", diff)
				}
				return
			}
			failure := asError(t, err, resolve.Unreadable)
			if diff := cmp.Diff(tc.blocking, failure.Catalogs); diff != "" {
				t.Errorf("Catalogs (-want +got):\n%s", diff)
			}
			if failure.Bundle.Version != tc.withheld {
				t.Errorf("Bundle = %v, want version %q", failure.Bundle, tc.withheld)
			}
			if !errors.Is(err, errDown) {
				t.Errorf("%v does not wrap the cause", err)
			}
			want := `error walking catalogs: error getting package "p" from catalog "` + tc.blocking[0] + `": down`
			if err.Error() != want {
				t.Errorf("message = %q, want %q", err, want)
			}
		})
	}
}

func TestIdenticalBundles(t *testing.T) {
	t.Parallel()
	hex, other := strings.Repeat("a", 64), strings.Repeat("b", 64)
	with := func(name string, priority int32, options ...func(*resolve.Package)) resolve.Catalog {
		return catalog(name, priority, pkg(append([]func(*resolve.Package){blob("0.9.0"), blob("1.0.0")}, options...)...))
	}
	tests := map[string]struct {
		reason    string
		catalogs  []resolve.Catalog
		from      string
		also      []string
		ambiguous []string
	}{
		"same digest":          {reason: "the very same bundle", catalogs: []resolve.Catalog{with("b", 0, pinned("1.0.0", "r/p", hex)), with("a", 0, pinned("1.0.0", "r/p", hex))}, from: "a", also: []string{"b"}},
		"mirrored":             {reason: "a digest is the same content in every registry", catalogs: []resolve.Catalog{with("b", 0, pinned("1.0.0", "r/p", hex)), with("a", 0, pinned("1.0.0", "mirror/p:v1", hex))}, from: "a", also: []string{"b"}},
		"lower priority":       {reason: "only catalogs that could have won", catalogs: []resolve.Catalog{with("b", 0, pinned("1.0.0", "r/p", hex)), with("a", -1, pinned("1.0.0", "r/p", hex))}, from: "b"},
		"different digest":     {reason: "two bundles under one name", catalogs: []resolve.Catalog{with("b", 0, pinned("1.0.0", "r/p", hex)), with("a", 0, pinned("1.0.0", "r/p", other))}, ambiguous: []string{"a", "b"}},
		"one of three differs": {reason: "a majority decides nothing", catalogs: []resolve.Catalog{with("c", 0, pinned("1.0.0", "r/p", hex)), with("b", 0, pinned("1.0.0", "r/p", hex)), with("a", 0)}, ambiguous: []string{"a", "b", "c"}},
		"same tag":             {reason: "a tag proves nothing", catalogs: []resolve.Catalog{with("b", 0), with("a", 0)}, ambiguous: []string{"a", "b"}},
		"broken digest":        {reason: "nor does this", catalogs: []resolve.Catalog{with("b", 0, pinned("1.0.0", "r/p", "00")), with("a", 0, pinned("1.0.0", "r/p", "00"))}, ambiguous: []string{"a", "b"}},
		"no image":             {reason: "nothing to compare", catalogs: []resolve.Catalog{with("b", 0, image("1.0.0", "")), with("a", 0, image("1.0.0", ""))}, ambiguous: []string{"a", "b"}},
		"renamed":              {reason: "one image under two names", catalogs: []resolve.Catalog{with("b", 0, pinned("1.0.0", "r/p", hex)), catalog("a", 0, pkg(named("renamed", "1.0.0"), pinned("1.0.0", "r/p", hex)))}, ambiguous: []string{"a", "b"}},
		"other version text":   {reason: "the record would differ", catalogs: []resolve.Catalog{with("b", 0, pinned("1.0.0", "r/p", hex)), catalog("a", 0, pkg(named("p.v1.0.0", "1.0.0+1"), pinned("1.0.0+1", "r/p", hex)))}, ambiguous: []string{"a", "b"}},
		"different version":    {reason: "one image under two versions", catalogs: []resolve.Catalog{with("b", 0, pinned("1.0.0", "r/p", hex)), with("a", 0, blob("1.1.0"), pinned("1.1.0", "r/p", hex))}, ambiguous: []string{"a", "b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := resolve.Resolve(resolve.Request{Package: "p"}, tc.catalogs)
			if tc.ambiguous != nil {
				failure := asError(t, err, resolve.Ambiguous)
				if diff := cmp.Diff(tc.ambiguous, failure.Catalogs); diff != "" {
					t.Errorf("Catalogs (-want +got):\n%s", diff)
				}
				return
			}
			if err != nil || got.Catalog != tc.from || got.Identity.Version != "1.0.0" {
				t.Fatalf("Resolve() = %v from %q, %v; want 1.0.0 from %q: %s", got.Identity, got.Catalog, err, tc.from, tc.reason)
			}
			if diff := cmp.Diff(tc.also, got.AlsoIn); diff != "" {
				t.Errorf("AlsoIn (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeprecationsOfTheWinner(t *testing.T) {
	t.Parallel()
	ours := resolve.Deprecation{Scope: resolve.PackageScope, Name: "p", Message: "ours"}
	theirs := resolve.Deprecation{Scope: resolve.PackageScope, Name: "p", Message: "theirs"}
	says := func(d resolve.Deprecation) func(*resolve.Package) {
		return func(p *resolve.Package) { p.Deprecations = append(p.Deprecations, d) }
	}
	hi := catalog("hi", 1, pkg(blob("1.0.0"), says(ours)))
	lo := catalog("lo", 0, pkg(blob("1.0.0"), says(theirs)))
	for _, catalogs := range [][]resolve.Catalog{{hi, lo}, {lo, hi}} {
		got, err := resolve.Resolve(resolve.Request{Package: "p"}, catalogs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]resolve.Deprecation{ours}, got.Deprecations); diff != "" {
			t.Errorf("Deprecations (-want +got):\n%s", diff)
		}
	}
}

func asError(t *testing.T, err error, kind resolve.Kind) *resolve.Error {
	t.Helper()
	var failure *resolve.Error
	if !errors.As(err, &failure) || failure.Kind != kind {
		t.Fatalf("Resolve() error = %v, want one of kind %s", err, kind)
	}
	return failure
}
