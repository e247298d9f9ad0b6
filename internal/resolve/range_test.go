package resolve_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	mm "github.com/Masterminds/semver/v3"
	"github.com/blang/semver/v4"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestRangeContains(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		ranges []string // all hold the same versions
		in     []string
		out    []string
	}{
		"any":             {reason: "no range, no rule about pre-releases", ranges: []string{""}, in: []string{"0.0.0", "1.2.3", "2.0.0-rc.1"}},
		"exact":           {reason: "build metadata and releases never matter", ranges: []string{"1.2.3", "=1.2.3", "v1.2.3", "1.2.3+7"}, in: []string{"1.2.3", "1.2.3+2", "1.2.3+001"}, out: []string{"1.2.4", "1.2.3-rc.1"}},
		"minor":           {ranges: []string{"1.2", "1.2.x", "~1.2.x", "~1.2.0"}, in: []string{"1.2.0", "1.2.9"}, out: []string{"1.1.9", "1.3.0"}},
		"major":           {reason: "what follows a wildcard is ignored", ranges: []string{"1", "1.x", "1.*", "1.x.3", "~1"}, in: []string{"1.0.0", "1.9.9"}, out: []string{"0.9.0", "2.0.0"}},
		"all releases":    {ranges: []string{"*", "x", "x.1.2", "~*", "~0.0.0"}, in: []string{"0.0.0", "9.9.9"}, out: []string{"1.0.0-rc.1"}},
		"caret wildcard":  {reason: "a quirk of the reference implementation's library", ranges: []string{"^*"}, in: []string{"0.0.0"}, out: []string{"0.0.1", "1.0.0"}},
		"tilde":           {ranges: []string{"~1.2.3", "~>1.2.3"}, in: []string{"1.2.3", "1.2.9"}, out: []string{"1.2.2", "1.3.0"}},
		"caret":           {ranges: []string{"^1.2.3"}, in: []string{"1.2.3", "1.9.0"}, out: []string{"1.2.2", "2.0.0"}},
		"caret 0.2.3":     {ranges: []string{"^0.2.3"}, in: []string{"0.2.3", "0.2.9"}, out: []string{"0.2.2", "0.3.0"}},
		"caret 0.2":       {ranges: []string{"^0.2"}, in: []string{"0.2.0", "0.2.9"}, out: []string{"0.1.0", "0.3.0"}},
		"caret 0.0.3":     {ranges: []string{"^0.0.3"}, in: []string{"0.0.3"}, out: []string{"0.0.2", "0.0.4"}},
		"caret 0.0":       {ranges: []string{"^0.0"}, in: []string{"0.0.0", "0.0.9"}, out: []string{"0.1.0"}},
		"caret 0":         {ranges: []string{"^0"}, in: []string{"0.0.0", "0.9.0"}, out: []string{"1.0.0"}},
		"above major":     {ranges: []string{">1"}, in: []string{"2.0.0"}, out: []string{"1.9.9"}},
		"above minor":     {ranges: []string{">1.2"}, in: []string{"1.3.0"}, out: []string{"1.2.9"}},
		"up to major":     {ranges: []string{"<=2", "<=2.x", "=<2"}, in: []string{"2.9.9"}, out: []string{"3.0.0"}},
		"up to minor":     {ranges: []string{"<=1.2"}, in: []string{"1.2.9"}, out: []string{"1.3.0"}},
		"below major":     {ranges: []string{"<2"}, in: []string{"1.9.9"}, out: []string{"2.0.0"}},
		"not major":       {ranges: []string{"!=1.x"}, in: []string{"0.9.0", "2.0.0"}, out: []string{"1.5.0"}},
		"not minor":       {ranges: []string{"!=1.2.x"}, in: []string{"1.1.0", "1.3.0"}, out: []string{"1.2.5"}},
		"union":           {ranges: []string{">=1.0.0 <2.0.0 || ^3", ">=1.0.0, <2.0.0||^3"}, in: []string{"1.5.0", "3.1.0"}, out: []string{"2.0.0", "4.0.0"}},
		"contradiction":   {reason: "legal, and empty", ranges: []string{"1.2.3 1.2.4"}, out: []string{"1.2.3", "1.2.4"}},
		"pre-release":     {ranges: []string{">=1.0.0-0"}, in: []string{"1.0.0-rc.1", "2.0.0-rc.1", "2.0.0"}, out: []string{"0.9.0-rc.1"}},
		"pre-release and": {reason: "2.0.0-rc.1 is below 2.0.0", ranges: []string{">=1.0.0-0 <2.0.0"}, in: []string{"2.0.0-rc.1"}, out: []string{"2.0.0"}},
		"pre-release end": {ranges: []string{">=1.0.0-0 <2.0.0-0"}, in: []string{"1.5.0-rc.1"}, out: []string{"2.0.0-rc.1"}},
		"pre-release or":  {reason: "only the group that names one takes them", ranges: []string{"1.0.0 || >=2.0.0-0"}, in: []string{"1.0.0", "2.0.0-rc.1"}, out: []string{"1.0.0-rc.1"}},
		"everything":      {ranges: []string{"*-0"}, in: []string{"0.0.1-alpha", "1.0.0", "2.0.0-rc.1"}},
		"major with pre":  {ranges: []string{"1.x-0"}, in: []string{"1.5.0-rc.1", "1.0.0"}, out: []string{"2.0.0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range tc.ranges {
				parsed := mustRange(t, text)
				for _, version := range slices.Concat(tc.in, tc.out) {
					want := slices.Contains(tc.in, version)
					if got := parsed.Contains(mustVersion(t, version)); got != want {
						t.Errorf("%q contains %s: %t, want %t (%s)", text, version, got, want, tc.reason)
					}
				}
			}
		})
	}
}

func TestParseRangeError(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"foobar":                 `desired version range "foobar" is invalid: improper constraint: "foobar"`,
		"1.2.3-01":               `desired version range "1.2.3-01" is invalid: constraint parser error`,
		"99999999999999999999.0": `desired version range "99999999999999999999.0" is invalid: constraint parser error`,
		"1.0.0 && 2.0.0":         `desired version range "1.0.0 && 2.0.0" is invalid: improper constraint: "1.0.0 && 2.0.0"`,
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := resolve.ParseRange(text)
			var failure *resolve.RangeError
			if !errors.As(err, &failure) {
				t.Fatalf("ParseRange() error = %v, want a *resolve.RangeError", err)
			}
			if failure.Text != text || err.Error() != want {
				t.Errorf("ParseRange() error = %q for %q, want %q", err, failure.Text, want)
			}
		})
	}
	for name, text := range map[string]string{"a lone bar": "|", "too long": strings.Repeat("1.0.0 ", 1000)} {
		if _, err := resolve.ParseRange(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRangeIdentity(t *testing.T) {
	t.Parallel()
	a, b := mustRange(t, "^1"), mustRange(t, "1.x")
	if !a.Equal(mustRange(t, "^1")) || a.Equal(b) || a.Equal(resolve.Range{}) {
		t.Error("ranges are equal if and only if their text is")
	}
	if a.String() != "^1" {
		t.Errorf("String() = %q, want the text", a)
	}
}

// FuzzParseRange holds ranges against the library that defines their syntax.
func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{
		"", "*", "1.x || ^2 !=2.1", ">=1.0.0-0, <2", "|", "1.2.3 - 2.0.0", "~>0.0", "99999999999999999999",
		"!=1.2.x-0", "<=x", ">x-0", "^x", "~0.0.0-0", "01.2", ">=1.2.3-a.1+b", "=>v1 =<2", "!=1-0",
	} {
		f.Add(seed, "1.2.3-rc.1+4")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		got, err := resolve.ParseRange(text)
		want, wantErr := mm.NewConstraint(text)
		if text != "" && (err == nil) != (wantErr == nil) {
			t.Fatalf("ParseRange(%q) error = %v, want %v", text, err, wantErr)
		}
		v, versionErr := bundle.ParseVersion(version)
		same, sameErr := mm.StrictNewVersion(version)
		if text == "" || err != nil || versionErr != nil || sameErr != nil {
			return
		}
		if got.Contains(v) != want.Check(same) {
			t.Errorf("%q contains %q: %t, want %t", text, version, got.Contains(v), want.Check(same))
		}
	})
}

// FuzzSkipRange holds edges against the range parser alone. Alternatives stay
// out of the comparison: the parser's ranges call a nil function for an empty
// one, which is what the seeds cross.
func FuzzSkipRange(f *testing.F) {
	for _, seed := range []string{
		"<1.0.0", ">=1.0.0 <2.0.0", ">=9.0.0 || || <0.1.0", ">=9.0.0 || 1 || <0.1.0", "1.x", "!=1.2.x",
		">=1.0.0, <2.0.0", ">", "x", "||", strings.Repeat("<2.0.0 ", 1000),
	} {
		f.Add(seed, "1.2.3")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		parsed, err := bundle.ParseVersion(version)
		if err != nil || parsed.Compare(mustVersion(t, "9.9.9")) == 0 {
			t.Skip("no version, or the one that stays")
		}
		_, err = resolve.Resolve(resolve.Request{Package: "p", Installed: installed(version)},
			one(channel("a", entry("9.9.9", sr(text)))))
		if strings.Contains(text, "||") || len(text) > 4096 {
			return
		}
		skipRange, rangeErr := semver.ParseRange(text)
		want := text != "" && rangeErr == nil && skipRange(parsed.Version)
		if got := err == nil; got != want {
			t.Errorf("skipRange %q is an edge from %q: %t, want %t", text, version, got, want)
		}
	})
}

func mustVersion(t testing.TB, text string) bundle.Version {
	t.Helper()
	version, err := bundle.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return version
}
