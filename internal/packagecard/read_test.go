package packagecard

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `{"schema":"olm.bundle","package":"p","name":"p.v1.1.0","properties":[{"type":"olm.package","value":{"version":"1.1.0"}},{"type":"olm.csv.metadata","value":{"displayName":"New P","provider":{"name":"Inc"},"keywords":["db","db\u202e"],"annotations":{"description":"short"},"description":"long","customResourceDefinitions":{"owned":[{"kind":"P","version":"v1"}]}}}]}
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

// A package without metadata has a card with less on it, and a bundle without a package none.
func TestCards(t *testing.T) {
	t.Parallel()
	got, err := Read(t.Context(), strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := []Card{
		{
			Package: "p", Title: "New P", Provider: "Inc", Summary: "short", Keywords: []string{"db", "db"}, DefaultChannel: "stable",
			Newest: map[string]string{"stable": "1.1.0", "old": "1.0.0"},
		},
		{Package: "q", Summary: "Q is there.", Newest: map[string]string{}, Deprecated: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	details, err := ReadDetails(t.Context(), strings.NewReader(sample), "p")
	if err != nil || details.Description != "long" || len(details.Definitions) != 1 || details.Definitions[0] != "P v1" {
		t.Errorf("got %+v, %v", details, err)
	}
	if details, err := ReadDetails(t.Context(), strings.NewReader(sample), "undescribed"); details != nil || err != nil {
		t.Errorf("got %+v, %v", details, err)
	}
}

// A catalog that ends early is an error, and so is the end of the context.
func TestUnreadableCatalogs(t *testing.T) {
	t.Parallel()
	if _, err := Read(t.Context(), strings.NewReader(`{"schema":"olm.package"`)); err == nil {
		t.Error("half an object is read")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ended, strings.NewReader(sample)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func png(size int) string {
	return base64.StdEncoding.EncodeToString([]byte("\x89PNG\x0d\x0a\x1a\x0a" + strings.Repeat("0", size-8)))
}

// What is beyond a bound is cut, and icons are left out.
func TestCardsAreBounded(t *testing.T) {
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
	var content strings.Builder
	icon := png(maxIconBytes)
	for i := range maxIconsBytes/maxIconBytes + 3 {
		fmt.Fprintf(&content, `{"schema":"olm.package","name":"icon-%03d","icon":{"base64data":%q,"mediatype":"image/png"}}`+"\n", i, icon)
	}
	for i := range maxCards {
		fmt.Fprintf(&content, `{"schema":"olm.package","name":"p-%d"}`+"\n", i)
	}
	cards, err := Read(t.Context(), strings.NewReader(content.String()))
	if err != nil || len(cards) != maxCards {
		t.Fatalf("%d cards, %v", len(cards), err)
	}
	icons := 0
	for _, card := range cards {
		if card.Icon != nil {
			icons++
		}
	}
	if icons != maxIconsBytes/maxIconBytes {
		t.Errorf("%d icons are kept", icons)
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
