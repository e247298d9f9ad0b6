package packagecard

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `{"schema":"olm.bundle","package":"p","name":"p.v1.1.0","properties":[{"type":"olm.package","value":{"version":"1.1.0"}},{"type":"olm.csv.metadata","value":{"displayName":"New P","provider":{"name":"Inc"},"keywords":["db","db\u202e"],"annotations":{"description":"short"},"description":"long","crdDescriptions":{"owned":[{"kind":"P","version":"v1"}]}}}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","properties":[{"type":"olm.package","value":{"version":"1.0.0"}},{"type":"olm.csv.metadata","value":{"displayName":"Old P"}}]}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"},{"name":"p.v1.1.0"},{"name":"gone"}]}
{"schema":"olm.channel","package":"p","name":"old","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.package","name":"p","defaultChannel":"stable","description":"# P\n\nA **package**.\nMore."}
{"schema":"olm.deprecations","package":"q","entries":[{"reference":{"schema":"olm.package"},"message":"m"}]}
{"schema":"olm.package","name":"q","description":"<b>x</b>\nQ is there."}
{"schema":"olm.bundle","package":"q","name":"q.v1","properties":[{"type":"olm.package","value":{"version":"one"}},{"type":"olm.csv.metadata","value":"nothing"}]}
{"schema":"olm.bundle","package":"undescribed","name":"u.v1.0.0","properties":[]}
{"schema":"other","name":"o"}
`

// The details are those of the newest bundle, of one package alone; a package without
// metadata has less of them, and what no olm.package describes none.
func TestDetails(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]*Details{
		"p": {
			Package: "p", DisplayName: "New P", Provider: "Inc", Summary: "short", DefaultChannel: "stable", Description: "long",
			Newest: map[string]string{"stable": "1.1.0", "old": "1.0.0"}, Definitions: []string{"P v1"},
		},
		"q":           {Package: "q", Summary: "Q is there.", Description: "<b>x</b>\nQ is there.", Newest: map[string]string{}},
		"undescribed": nil,
	} {
		got, err := ReadDetails(t.Context(), strings.NewReader(sample), name)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
}

// A catalog that ends early is an error, and so is the end of the context.
func TestUnreadableCatalogs(t *testing.T) {
	t.Parallel()
	if _, err := ReadDetails(t.Context(), strings.NewReader(`{"schema":"olm.package"`), "p"); err == nil {
		t.Error("half an object is read")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadIcon(ended, strings.NewReader(sample), "p"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func png(size int) string {
	return base64.StdEncoding.EncodeToString([]byte("\x89PNG\x0d\x0a\x1a\x0a" + strings.Repeat("0", size-8)))
}

// What is beyond a bound is cut, and icons are left out.
func TestDetailsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10<<20)
	if got := summaryOf(long); len(got) > maxSummaryBytes {
		t.Errorf("a summary has %d bytes", len(got))
	}
	if got := title(long); len(got) > maxTitleBytes {
		t.Errorf("a title has %d bytes", len(got))
	}
	if got := cut(long); len(got) > maxDescriptionBytes+len("…") {
		t.Errorf("a description has %d bytes", len(got))
	}
	if got := texts(make([]int, 10*maxItems), func(int) string { return "x" }); len(got) != maxItems {
		t.Errorf("a list has %d items", len(got))
	}
	if newIcon(png(maxIconBytes), "") == nil || newIcon(png(maxIconBytes+8), "") != nil {
		t.Error("the bound on icons does not hold")
	}
}

// An icon is an image by its content.
func TestIconsAreImages(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"\x89PNG\x0d\x0a\x1a\x0a": "image/png", "GIF89a": "image/gif", "<svg/>": typeSVG, "\xef\xbb\xbf <?xml?><!DOCTYPE svg><!-- <html> --><svg>": typeSVG,
		"<html>": "", "<svgx": typeSVG, "<!-- ": "", "": "", "%PDF-": "", "<p><svg>": "",
	} {
		got := ""
		if icon := newIcon(base64.StdEncoding.EncodeToString([]byte(content)), typeSVG); icon != nil {
			got = icon.MediaType
		}
		if got != want {
			t.Errorf("%q is %q, want %q", content, got, want)
		}
	}
	if newIcon(base64.StdEncoding.EncodeToString([]byte("<svg/>")), "image/png") != nil {
		t.Error("a drawing that is said to be pixels is shown")
	}
}
