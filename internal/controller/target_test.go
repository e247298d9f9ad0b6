package controller

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

const (
	inputsNow   = "sha256:now"
	inputsOther = "sha256:other"
)

func identity(version string) bundle.Identity {
	return bundle.Identity{Package: "p", Name: "p.v" + version, Version: version}
}

func installed(version string) *installation.Revision {
	return &installation.Revision{Bundle: identity(version), Image: "registry.test/p:v" + version, Inputs: inputsNow}
}

// offering is a catalog with the given versions, each of which replaces the one
// before.
func offering(versions ...string) resolve.Catalog {
	pkg := resolve.Package{Name: "p", Channels: []resolve.Channel{{Name: "stable"}}}
	for i, version := range versions {
		pkg.Bundles = append(pkg.Bundles, resolve.Bundle{
			Name: "p.v" + version, Version: version, Image: "registry.test/p:v" + version,
		})
		entry := resolve.Entry{Name: "p.v" + version}
		if i > 0 {
			entry.Replaces = "p.v" + versions[i-1]
		}
		pkg.Channels[0].Entries = append(pkg.Channels[0].Entries, entry)
	}
	return resolve.Catalog{Name: "c", Package: resolve.Prepare(pkg)}
}

func mustRange(t *testing.T, text string) resolve.Range {
	t.Helper()
	versions, err := resolve.ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

func TestDecide(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	tests := map[string]struct {
		reason   string
		versions string
		invalid  error
		observed Observed
		action   Action
		version  string
		err      bool
	}{
		"first install": {
			reason:   "nothing is installed and the catalog has a bundle",
			observed: Observed{Catalogs: []resolve.Catalog{offering("1.0.0", "1.1.0")}},
			action:   Install, version: "1.1.0",
		},
		"upgrade": {
			reason: "the catalog has a successor",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0")},
				Catalogs:     []resolve.Catalog{offering("1.0.0", "1.1.0")},
			},
			action: Upgrade, version: "1.1.0",
		},
		"at rest": {
			reason: "the installed bundle is the wanted one",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.1.0")},
				Catalogs:     []resolve.Catalog{offering("1.0.0", "1.1.0")},
			},
			action: Keep, version: "1.1.0",
		},
		"other inputs": {
			reason: "a change of configuration makes a new revision of the same bundle",
			observed: Observed{
				Installation: installation.State{Installed: &installation.Revision{
					Bundle: identity("1.1.0"), Image: "registry.test/p:v1.1.0", Inputs: inputsOther,
				}},
				Catalogs: []resolve.Catalog{offering("1.1.0")},
			},
			action: Upgrade, version: "1.1.0",
		},
		"unknown inputs": {
			reason: "what another controller installed is not written to because its record says less than ours",
			observed: Observed{
				Installation: installation.State{Installed: &installation.Revision{Bundle: identity("1.1.0"), Image: "registry.test/p:v1.1.0"}},
				Catalogs:     []resolve.Catalog{offering("1.1.0")},
			},
			action: Keep, version: "1.1.0",
		},
		"moved image": {
			reason: "another image under the same version is another content",
			observed: Observed{
				Installation: installation.State{Installed: &installation.Revision{
					Bundle: identity("1.1.0"), Image: "mirror.test/p:v1.1.0", Inputs: inputsNow,
				}},
				Catalogs: []resolve.Catalog{offering("1.1.0")},
			},
			action: Upgrade, version: "1.1.0",
		},
		"unfinished": {
			reason: "a half-done upgrade that is no longer wanted has to be undone",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.1.0"), Unfinished: true},
				Catalogs:     []resolve.Catalog{offering("1.1.0")},
			},
			action: Upgrade, version: "1.1.0",
		},
		"unfinished, unreachable": {
			reason:   "what becomes of the part that was done is decided by time",
			versions: "3.x",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0"), Unfinished: true},
				Catalogs:     []resolve.Catalog{offering("1.0.0", "1.1.0")},
			},
			action: Keep, version: "1.0.0", err: true,
		},
		"unfinished, unreadable catalog": {
			reason: "likewise: the catalog may not have been read yet",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0"), Unfinished: true},
				Catalogs:     []resolve.Catalog{{Name: "c", Err: errBoom}},
			},
			action: Keep, version: "1.0.0", err: true,
		},
		"unfinished, no catalog": {
			reason:   "without a catalog the installed bundle is what is wanted: the rest has to be undone",
			observed: Observed{Installation: installation.State{Installed: installed("1.0.0"), Unfinished: true}},
			action:   Upgrade, version: "1.0.0",
		},
		"unfinished, nothing installed": {
			reason:   "a first install that failed half-way leaves nothing to keep",
			observed: Observed{Installation: installation.State{Unfinished: true}, Catalogs: []resolve.Catalog{{Name: "c", Err: errBoom}}},
			action:   None, err: true,
		},
		"unreachable": {
			reason:   "no way forward: what is installed stays",
			versions: "3.x",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0")},
				Catalogs:     []resolve.Catalog{offering("1.0.0", "1.1.0")},
			},
			action: Keep, version: "1.0.0", err: true,
		},
		"unreadable catalog": {
			reason: "an unreadable catalog never stops repair",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0")},
				Catalogs:     []resolve.Catalog{{Name: "c", Err: errBoom}},
			},
			action: Keep, version: "1.0.0",
		},
		"unreadable catalog, other inputs": {
			reason: "the catalog may have another bundle",
			observed: Observed{
				Installation: installation.State{
					Installed: &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0", Inputs: inputsOther},
				},
				Catalogs: []resolve.Catalog{{Name: "c", Err: errBoom}},
			},
			action: Keep, version: "1.0.0", err: true,
		},
		"package gone": {
			reason: "the installed bundle is what is wanted",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0")}, Catalogs: []resolve.Catalog{{Name: "c"}},
			},
			action: Keep, version: "1.0.0",
		},
		"package gone, other inputs": {
			reason: "a change of configuration needs no catalog",
			observed: Observed{
				Installation: installation.State{
					Installed: &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0", Inputs: inputsOther},
				},
				Catalogs: []resolve.Catalog{{Name: "c"}},
			},
			action: Upgrade, version: "1.0.0",
		},
		"package gone, range moved on": {
			reason:   "the wanted version can come from a catalog only",
			versions: "2.x",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0")}, Catalogs: []resolve.Catalog{{Name: "c"}},
			},
			action: Keep, version: "1.0.0", err: true,
		},
		"package gone, unfinished": {
			reason: "what becomes of the part that was done is decided by time",
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0"), Unfinished: true}, Catalogs: []resolve.Catalog{{Name: "c"}},
			},
			action: Keep, version: "1.0.0", err: true,
		},
		"no catalog": {
			reason:   "without a catalog the installed bundle is what is wanted",
			observed: Observed{Installation: installation.State{Installed: installed("1.0.0")}},
			action:   Keep, version: "1.0.0",
		},
		"no catalog, range holds": {
			reason:   "a range is a set of versions, not a text to compare",
			versions: ">=1.0.0 <2.0.0",
			observed: Observed{Installation: installation.State{Installed: installed("1.0.0")}},
			action:   Keep, version: "1.0.0",
		},
		"no catalog, range moved on": {
			reason:   "the wanted version can come from a catalog only",
			versions: "2.x",
			observed: Observed{Installation: installation.State{Installed: installed("1.0.0")}},
			action:   Keep, version: "1.0.0", err: true,
		},
		"no catalog, other inputs": {
			reason: "a change of configuration needs no catalog",
			observed: Observed{Installation: installation.State{
				Installed: &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0", Inputs: inputsOther},
			}},
			action: Upgrade, version: "1.0.0",
		},
		"invalid spec, installed": {
			reason:  "a mistake in the spec does not stop repair",
			invalid: &InvalidSpecError{Err: errBoom},
			observed: Observed{
				Installation: installation.State{Installed: installed("1.0.0")},
				Catalogs:     []resolve.Catalog{offering("1.0.0", "1.1.0")},
			},
			action: Keep, version: "1.0.0", err: true,
		},
		"invalid spec, fresh": {
			reason:  "nothing to keep",
			invalid: &InvalidSpecError{Err: errBoom},
			action:  None, err: true,
		},
		"no ServiceAccount": {
			reason: "nobody to act as, not even for repair",
			observed: Observed{
				Installation:      installation.State{Installed: installed("1.0.0")},
				ServiceAccountErr: &MissingServiceAccountError{Namespace: "n", Name: "s"},
				Catalogs:          []resolve.Catalog{offering("1.0.0", "1.1.0")},
			},
			action: None, err: true,
		},
		"unreadable records": {
			reason:   "what is installed is not known: anything else could be a second install",
			observed: Observed{InstallationErr: errBoom, Catalogs: []resolve.Catalog{offering("1.0.0")}},
			action:   None, err: true,
		},
		"nothing anywhere": {
			reason: "no catalog and nothing installed",
			action: None, err: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted := Wanted{
				Request: resolve.Request{Package: "p", Range: mustRange(t, tc.versions)},
				Inputs:  inputsNow,
			}
			got := decide(wanted, tc.invalid, tc.observed)
			if got.Action != tc.action {
				t.Errorf("action = %s, want %s: %s", got.Action, tc.action, tc.reason)
			}
			if (got.Err != nil) != tc.err {
				t.Errorf("err = %v, want one: %t: %s", got.Err, tc.err, tc.reason)
			}
			want := bundle.Identity{}
			if tc.version != "" {
				want = identity(tc.version)
			}
			if diff := cmp.Diff(want, got.Bundle, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("bundle (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}
