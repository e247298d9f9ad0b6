package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// line is a text in one line, without what would turn writing around.
func line(text string) string { return excerpt.Line(text, maxLineBytes) }

// harmless is a text of many lines without what would turn writing around or hide some of
// it. What it replaces can be seen.
func harmless(text string) string {
	if len(text) > maxTextBytes {
		text = fmt.Sprintf("%s\n... and %d bytes more\n", text[:maxTextBytes], len(text)-maxTextBytes)
	}
	return excerpt.Printable(text, "\n\t")
}

// markdown is a description as HTML: text, lists, tables and links that leave the page, and
// nothing that is loaded. HTML in a description is dropped, and what is left is sanitised.
func markdown(text string) template.HTML {
	if len(text) > maxMarkdownBytes {
		text = text[:maxMarkdownBytes] + "…"
	}
	var out bytes.Buffer
	if err := renderer.Convert([]byte(harmless(text)), &out); err != nil {
		return template.HTML(template.HTMLEscapeString(harmless(text))) //nolint:gosec // escaped
	}
	return template.HTML(sanitiser.SanitizeBytes(out.Bytes())) //nolint:gosec // sanitised
}

var (
	renderer  = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify))
	sanitiser = newSanitiser()
)

// newSanitiser allows what texts are made of. No element has a name, an identity, a class or
// a style, so that none can be taken for one of ours.
func newSanitiser() *bluemonday.Policy {
	policy := bluemonday.NewPolicy()
	policy.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote",
		"pre", "code", "em", "strong", "del", "table", "thead", "tbody", "tr", "th", "td")
	policy.AllowAttrs("href").OnElements("a")
	policy.AllowURLSchemes("http", "https", "mailto")
	policy.AllowRelativeURLs(false)
	policy.RequireParseableURLs(true)
	policy.RequireNoFollowOnLinks(true)
	policy.RequireNoReferrerOnLinks(true)
	policy.AddTargetBlankToFullyQualifiedLinks(true)
	return policy
}

// webURL is a URL that a link may lead to; empty for any other.
func webURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return ""
	}
	return parsed.String()
}
