package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/overview"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// active is what would make something happen in a browser, or load something.
var active = regexp.MustCompile(`(?i)<(script|iframe|object|embed|style|link|base|form|svg|meta)\b|<img|\son\w+\s*=|javascript:|data:|vbscript:|style\s*=|srcset`)

// hostileMarkdown are descriptions that try to make something happen.
var hostileMarkdown = map[string]string{
	"a script":                      "<script>alert(1)</script>",
	"a handler":                     `<b onclick="alert(1)">x</b>`,
	"an image with a handler":       `<img src=x onerror=alert(1)>`,
	"an image from outside":         "![x](https://evil.test/x.png)",
	"a link that is a script":       "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](&#106;avascript:alert(1))",
	"a link with a tab in it":       "[x](java\tscript:alert(1))",
	"a link to data":                "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
	"an autolink":                   "<javascript:alert(1)> <data:text/html,x>",
	"a drawing":                     "<svg><script>alert(1)</script></svg>",
	"a style":                       "<style>body{display:none}</style><p style=\"position:fixed\">x</p>",
	"a form":                        `<form action="https://evil.test"><input name="token"></form>`,
	"a page that goes elsewhere":    `<meta http-equiv="refresh" content="0;url=https://evil.test">`,
	"an element that is not closed": `<p title="`,
	"a comment":                     "<!--><script>alert(1)</script>-->",
	"a template":                    "{{.}} <template><script>alert(1)</script></template>",
	"a reference":                   "[x]\n\n[x]: javascript:alert(1) \"onmouseover=alert(1)\"",
	"a name that hides ours":        `<a id="count" name="q">x</a>`,
}

// Descriptions come from strangers: nothing of them does anything.
func TestHostileDescriptionsAreHarmless(t *testing.T) {
	t.Parallel()
	for name, text := range hostileMarkdown {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			html := string(markdown(text))
			tags := regexp.MustCompile(`<[^>]*>`).FindAllString(html, -1)
			for _, tag := range tags {
				if active.MatchString(tag) || strings.Contains(tag, "id=") || strings.Contains(tag, "name=") {
					t.Errorf("%s in\n%s", tag, html)
				}
			}
		})
	}
	links := string(markdown("[x](https://x.test) [y](/extensions) <z@z.test>"))
	for _, want := range []string{`href="https://x.test"`, "nofollow", "noreferrer", "noopener", `target="_blank"`, "mailto:z@z.test"} {
		if !strings.Contains(links, want) {
			t.Errorf("%q is missing in %s", want, links)
		}
	}
	if strings.Contains(links, "/extensions") {
		t.Errorf("a link to a page of ours is left in %s", links)
	}
}

// A description that is large, or that is made to take long, is cut: as it is, none of these would
// come to an end.
func TestLargeDescriptionsAreCut(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	for _, piece := range []string{"x", "[", "![", "*a_", "`", "> ", "- ", "<a ", "&", "|a|b\n|-|-\n", "\n#", "[a](", "\\", "http://a", "~~"} {
		html := string(markdown(strings.Repeat(piece, 10<<20/len(piece))))
		if len(html) > 40*maxMarkdownBytes {
			t.Errorf("%q makes %d bytes", piece, len(html))
		}
	}
}

// What turns writing around, hides or moves it is replaced by what can be seen.
func TestTextsCannotTurnWritingAround(t *testing.T) {
	t.Parallel()
	const text = "a\u202eb\u2066c\u200bd\x1b[31me\x00f\ufeffg\u00adh"
	if got, want := harmless(text), "a\ufffdb\ufffdc\ufffdd\ufffd[31me\ufffdf\ufffdg\ufffdh"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := line(text); strings.ContainsAny(got, "\u202e\u2066\u200b\x1b\x00") {
		t.Errorf("got %q", got)
	}
	if got := string(markdown(text)); strings.ContainsAny(got, "\u202e\u2066\u200b\x1b\x00") {
		t.Errorf("got %q", got)
	}
	if got := line(strings.Repeat("x", 10<<20)); len(got) > maxLineBytes {
		t.Errorf("a line has %d bytes", len(got))
	}
	if got := harmless(strings.Repeat("x", 10<<20)); len(got) > maxTextBytes+100 || !strings.Contains(got, "bytes more") {
		t.Errorf("a text has %d bytes", len(got))
	}
}

// hostileText goes wherever a text goes.
const hostileText = `"><script>alert(1)</script><img src=x onerror=alert(1)>'{{.}}` + "\u202e"

func hostilePackage(t *testing.T, icon, mediaType string) string {
	t.Helper()
	var out strings.Builder
	for _, object := range []map[string]any{
		{"schema": "olm.package", "name": "p", "defaultChannel": hostileText, "description": hostileText, "icon": map[string]any{"base64data": icon, "mediatype": mediaType}},
		{"schema": "olm.channel", "package": "p", "name": hostileText, "entries": []any{map[string]any{"name": "p.v1.0.0"}}},
		{"schema": "olm.bundle", "package": "p", "name": "p.v1.0.0", "image": hostileText, "properties": []any{
			map[string]any{"type": "olm.package", "value": map[string]any{"packageName": "p", "version": "1.0.0"}},
			map[string]any{"type": "olm.csv.metadata", "value": map[string]any{
				"displayName": hostileText, "description": hostileText, "keywords": []any{hostileText}, "maturity": hostileText,
				"provider": map[string]any{"name": hostileText}, "links": []any{map[string]any{"name": hostileText, "url": "https://x.test/" + hostileText}},
				"maintainers": []any{map[string]any{"name": hostileText}}, "installModes": []any{map[string]any{"type": hostileText, "supported": true}},
				"annotations": map[string]any{"description": hostileText},
			}},
		}},
	} {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", data)
	}
	return out.String()
}

// What strangers have written is text on every page: in names, statuses, events, objects,
// catalogs, and in the URL.
func TestHostileTextsAreHarmless(t *testing.T) {
	t.Parallel()
	w := packageWorld(t, hostilePackage(t, pixel, "image/png"))
	w.pkg.Channels[0].Name = hostileText
	w.pkg.Deprecations[1].Message = hostileText
	w.explained.Lines = []string{hostileText}
	w.explained.Choices = []Choice{{hostileText, hostileText, hostileText, hostileText, hostileText}}
	w.situation = Situation{
		Events: []Event{{Type: hostileText, Reason: hostileText, Message: hostileText}}, Unknown: []string{hostileText},
		Objects: []overview.Object{{Kind: hostileText, Namespace: hostileText, Name: hostileText, Health: hostileText, Message: hostileText}}, Rights: hostileText,
	}
	w.preview.Obstacles = []string{hostileText}
	w.config = Configuration{Bundle: hostileText, Problems: []string{hostileText}, Schema: map[string]any{"description": hostileText, "properties": map[string]any{
		hostileText: map[string]any{}, `"><script>`: map[string]any{"type": "string", "description": hostileText, "enum": []any{hostileText}},
	}}}
	ext := installed("x", hostileText, func(ext *ocv1.ClusterExtension) {
		ext.Status.Conditions = []metav1.Condition{
			{Type: ocv1.TypeReady, Status: metav1.ConditionFalse, Reason: hostileText, Message: hostileText},
			{Type: ocv1.TypeDeprecated, Status: metav1.ConditionTrue, Message: hostileText},
		}
		ext.Spec.Source.Catalog.PackageName, ext.Annotations = hostileText, map[string]string{"a": hostileText}
		ext.Status.Pending = &ocv1.PendingUpgrade{Bundle: ocv1.BundleMetadata{Version: hostileText}, PlanSummary: hostileText}
	})
	w.change(ext)
	for _, path := range []string{
		"/extensions", "/extensions?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/extensions/x", "/extensions/x/plan", "/catalogs", "/packages",
		"/packages/c/p", "/packages/c/p?make=1&name=%22%3E%3Cscript%3E&namespace=n&account=a&config=%3Cscript%3E",
	} {
		body := w.get(t, path)
		if strings.Contains(body, "<script>") || strings.Contains(body, "<img src=x") || strings.Contains(body, "\u202e") {
			t.Errorf("%s:\n%s", path, body)
		}
	}
	if code, body, _ := w.ask(t, "/extensions/%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E"); code != http.StatusNotFound || strings.Contains(body, "<script>alert") {
		t.Errorf("code %d\n%s", code, body)
	}
}

// Icons are images or nothing. A drawing with a script in it cannot run it, wherever it is
// opened, and is only sent to where an image is shown.
func TestHostileIconsAreHarmless(t *testing.T) {
	t.Parallel()
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, test := range map[string]struct {
		icon, said, want string
	}{
		"an image":                       {pixel, "image/png", "image/png"},
		"an image that is called HTML":   {pixel, "text/html", "image/png"},
		"a page that is called an image": {encode("<html><script>alert(1)</script></html>"), "image/png", ""},
		"a page that is called SVG":      {encode("<html><svg></svg><script>alert(1)</script></html>"), "image/svg+xml", ""},
		"a drawing with a script":        {encode("<?xml version=\"1.0\"?><!-- x --><svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>"), "image/svg+xml", "image/svg+xml"},
		"no base64":                      {"<script>", "image/png", ""},
		"10 MB":                          {pixel + strings.Repeat("A", 10<<20), "image/png", ""},
		"a type that adds a header":      {pixel, "image/png\r\nSet-Cookie: a=b", "image/png"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := packageWorld(t, hostilePackage(t, test.icon, test.said))
			code, body, header := w.ask(t, "/packages/c/p/icon")
			if test.want == "" { // a letter stands in its place
				test.want = "image/svg+xml"
				if !strings.Contains(body, ">P</text>") || strings.Contains(body, "script") {
					t.Errorf("got %s", body)
				}
			}
			if code != http.StatusOK || header.Get("Content-Type") != test.want || header.Get("Content-Security-Policy") != iconPolicy || header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("code %d, %v", code, header)
			}
		})
	}
	w := packageWorld(t, hostilePackage(t, pixel, "image/png"))
	handler := w.handler(t)
	for destination, want := range map[string]int{"image": http.StatusOK, "document": http.StatusForbidden, "iframe": http.StatusForbidden, "object": http.StatusForbidden} {
		r := admitted(t, handler, request(t, "/packages/c/p/icon"))
		r.Header.Set("Sec-Fetch-Dest", destination)
		if got := answer(handler, r); got != want {
			t.Errorf("%s: code %d, want %d", destination, got, want)
		}
	}
}
