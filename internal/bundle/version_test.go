package bundle_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		text    string
		version string
		release string
		invalid bool
	}{
		"plain":              {reason: "no build metadata, no release", text: "1.2.3", version: "1.2.3"},
		"release":            {reason: "build metadata is the release", text: "1.0.0+2", version: "1.0.0", release: "2"},
		"pre-release":        {reason: "a pre-release is part of the version", text: "1.0.0-rc.1+2.a", version: "1.0.0-rc.1", release: "2.a"},
		"leading zero":       {reason: "not a release, stays build metadata", text: "1.0.0+001", version: "1.0.0+001"},
		"one bad identifier": {reason: "a release is whole or not at all", text: "1.2.3+4.005", version: "1.2.3+4.005"},
		"v prefix":           {reason: "strict SemVer", text: "v1.2.3", invalid: true},
		"two numbers":        {reason: "strict SemVer", text: "1.2", invalid: true},
		"empty":              {reason: "strict SemVer", text: "", invalid: true},
		"256 bytes":          {reason: "as long as one may be", text: "1.2.3-" + strings.Repeat("a", 250), version: "1.2.3-" + strings.Repeat("a", 250)},
		"257 bytes":          {reason: "takes many times its length in memory", text: "1.2.3-" + strings.Repeat("a", 251), invalid: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := bundle.ParseVersion(tc.text)
			if (err != nil) != tc.invalid {
				t.Fatalf("ParseVersion(%q) error = %v, want an error: %t (%s)", tc.text, err, tc.invalid, tc.reason)
			}
			if tc.invalid {
				return
			}
			if got.Version.String() != tc.version || got.Release.String() != tc.release {
				t.Errorf("ParseVersion(%q) = %s / %q, want %s / %q (%s)",
					tc.text, got.Version, got.Release, tc.version, tc.release, tc.reason)
			}
			if got.String() != tc.text {
				t.Errorf("String() = %q, want %q", got, tc.text)
			}
		})
	}
}

// TestLongVersions are neither parsed nor repeated in the error.
//
//nolint:paralleltest // allocations are counted
func TestLongVersions(t *testing.T) {
	text := "1.2.3-" + strings.Repeat("a.", 1<<20) + "a"
	_, err := bundle.ParseVersion(text)
	want := `parsing version "1.2.3-a.a.a.a.a.a.a.a.a.a.a.a.a."...: longer than 256 bytes`
	if err == nil || err.Error() != want {
		t.Errorf("got error %.200v, want %s", err, want)
	}
	if allocated := testing.AllocsPerRun(10, func() { _, _ = bundle.ParseVersion(text) }); allocated > 20 {
		t.Errorf("%v allocations", allocated)
	}
}

func TestVersionOrder(t *testing.T) {
	t.Parallel()
	want := []string{"0.9.0", "1.0.0-rc.1", "1.0.0", "1.0.0+1", "1.0.0+1.1", "1.0.0+9", "1.0.0+10", "1.0.0+rc.1", "1.0.1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b string) int { return mustParse(t, a).Compare(mustParse(t, b)) })
	if !slices.Equal(got, want) {
		t.Errorf("order = %v, want %v", got, want)
	}
}

func mustParse(t *testing.T, text string) bundle.Version {
	t.Helper()
	version, err := bundle.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestCompareVersionsAsTexts(t *testing.T) {
	t.Parallel()
	ordered := []string{"", "newest", "1.0.0-alpha", "1.0.0", "1.2.0", "1.10.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := bundle.CompareVersions(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("%q and %q: got %d, want %d", a, b, got, want)
			}
		}
	}
}
