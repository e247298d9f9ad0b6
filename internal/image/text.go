package image

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxQuotedBytes keeps a name from an image from filling a message.
	maxQuotedBytes = 128
	// maxTextBytes keeps what a registry answered from filling a message.
	maxTextBytes = 1024
)

// quote returns name quoted, so that it cannot break a line, and cut to a
// readable length.
func quote(name string) string {
	return strconv.Quote(truncate(name, maxQuotedBytes))
}

// singleLine returns text without control characters, cut to a bounded length.
func singleLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return truncate(text, maxTextBytes)
}

// volatile matches the parts of a transport error that change from one
// attempt to the next or that may carry a secret: credentials in a URL, the
// query of a signed URL, socket addresses, and the retry statistics of the
// transport.
var volatile = []struct {
	pattern *regexp.Regexp
	replace string
}{
	{regexp.MustCompile(`(https?://)[^/\s"@]*@`), "$1"},
	{regexp.MustCompile(`(https?://[^\s"?#]*)[?#][^\s"]*`), "$1"},
	{regexp.MustCompile(`\b(dial|read|write) (tcp|udp)[46]? [^\s:][^\s]*:(\s|$)`), "$1 $2:$3"},
	{regexp.MustCompile(` on [0-9a-fA-F.:\[\]]+:\d+: `), ": "},
	{regexp.MustCompile(`\(heuristic tuning data:[^)]*\): `), ""},
}

// scrub returns the text of a transport error on one line, without what is
// volatile or secret.
func scrub(text string) string {
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.replace)
	}
	return singleLine(text)
}

// truncate cuts text to at most limit bytes at a character boundary and marks
// the cut.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "..."
}
