package catalogserver

import (
	"slices"
	"strings"
	"testing"
)

// FuzzAcceptable reads any Accept-Encoding: there is always something to answer
// with, nothing is used that the header does not allow, and what it likes best
// comes first.
func FuzzAcceptable(f *testing.F) {
	for _, header := range []string{"", "gzip", "zstd;q=0.5, gzip", "*;q=0, identity;q=0", "gzip;q=1;q=0", "gzip;q=NaN, *;q=1e-400"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got := acceptable(header)
		if !slices.Contains(got, identity) {
			t.Errorf("%q is answered with nothing", header)
		}
		for i, c := range got {
			if !slices.Contains(codings, c) || slices.Contains(got[:i], c) {
				t.Errorf("%q is %q", header, got)
			}
			name := strings.ToLower(header)
			if c != identity && !strings.Contains(name, string(c)) && !strings.Contains(name, "*") {
				t.Errorf("%q is answered in %q, which it does not name", header, c)
			}
		}
		if refused := acceptable(header + ",gzip;q=0,zstd;q=0"); !slices.Equal(refused, []coding{identity}) {
			t.Errorf("%q with all refused is %q", header, refused)
		}
		for _, c := range []coding{gzipped, zstded} {
			// The last word on a coding counts.
			liked := acceptable(header + ",gzip;q=0.1,zstd;q=0.1,identity;q=0.1," + strings.ToUpper(string(c)) + " ; Q=1")
			if liked[0] != c || len(liked) != len(codings) {
				t.Errorf("%q with %q liked best is %q", header, c, liked)
			}
		}
	})
}
