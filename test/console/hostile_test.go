package console

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// harm is what would show that something of a catalog was carried out, wherever it stands.
const harm = `"><script>window.harm=1;alert(1)</script><img src="https://evil.test/x.png" onerror="window.harm=1"><svg onload="window.harm=1">` + "\u202e" + `'{{.}}`

// harmfulMarkdown tries the same by what Markdown has.
const harmfulMarkdown = harm + "\n\n[a link](javascript:window.harm=1) ![picture](https://evil.test/y.png) " +
	"[data](data:text/html,<script>alert(1)</script>)\n\n<iframe src=\"https://evil.test\"></iframe>\n\n<style>*{display:none}</style>\n\n" +
	"<form id=\"count\" action=\"https://evil.test\"><input name=\"q\"></form>\n\n| a | b |\n|---|---|\n| <script>alert(1)</script> | x |\n"

// harmfulDrawing is an icon.
const harmfulDrawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" onload="window.harm=1;alert(1)"><script>window.harm=1;alert(1)</script>` +
	`<image href="https://evil.test/z.png" width="5" height="5"/><rect width="10" height="10" fill="red"/></svg>`

// hostileCatalog has a package with harm in all that it says, and one that is large.
func hostileCatalog() ([]byte, error) {
	icon := map[string]any{"base64data": base64.StdEncoding.EncodeToString([]byte(harmfulDrawing)), "mediatype": "image/svg+xml"}
	large := map[string]any{"base64data": base64.StdEncoding.EncodeToString([]byte(harmfulDrawing + strings.Repeat(" ", 3<<20))), "mediatype": "image/svg+xml"}
	var out []byte
	for _, one := range []struct {
		name string
		icon map[string]any
		text string
	}{{"hostile", icon, harmfulMarkdown}, {"large", large, strings.Repeat(harmfulMarkdown+"*a_", 7<<20/len(harmfulMarkdown))}} {
		for _, object := range []map[string]any{
			{"schema": "olm.package", "name": one.name, "defaultChannel": harm, "description": one.text, "icon": one.icon},
			{"schema": "olm.channel", "package": one.name, "name": harm, "entries": []any{map[string]any{"name": one.name + ".v1.0.0"}}},
			{"schema": "olm.bundle", "package": one.name, "name": one.name + ".v1.0.0", "image": "registry.test/none:v1", "properties": []any{
				map[string]any{"type": "olm.package", "value": map[string]any{"packageName": one.name, "version": "1.0.0"}},
				map[string]any{"type": "olm.csv.metadata", "value": map[string]any{
					"displayName": harm, "description": one.text, "keywords": []any{harm}, "provider": map[string]any{"name": harm},
					"links": []any{map[string]any{"name": harm, "url": "javascript:window.harm=1"}},
				}},
			}},
			{"schema": "olm.deprecations", "package": one.name, "entries": []any{map[string]any{"reference": map[string]any{"schema": "olm.package"}, "message": harm}}},
		} {
			data, err := json.Marshal(object)
			if err != nil {
				return nil, err
			}
			out = append(append(out, data...), '\n')
		}
	}
	return out, nil
}

// What strangers have written does nothing in a browser: no script, no request to anywhere
// else, nothing that hides or replaces what is ours, and no writing that is turned around.
//
//nolint:paralleltest // it follows the one that measures
func TestHostilePackages(t *testing.T) {
	o := openTab(t, adminKubeconfig(t))
	unharmed := func(path string) {
		t.Helper()
		if evaluate[bool](o, `window.harm !== undefined`) {
			t.Errorf("%s: a script was carried out", path)
		}
		if text := o.text(); strings.Contains(text, "\u202e") {
			t.Errorf("%s: writing is turned around in\n%s", path, text)
		}
		if n := evaluate[int](o, `document.querySelectorAll("iframe, object, embed, style, script:not([src]), img[src^='http'], [onload], [onerror], main form#count").length`); n > 0 {
			t.Errorf("%s: %d elements of a stranger are there", path, n)
		}
	}
	o.visit("/packages?q=hostile")
	o.eventually("icons", `[...document.images].every((i) => i.complete && i.naturalWidth > 0)`)
	unharmed("packages")
	for _, name := range []string{"hostile", "large"} {
		o.visit("/packages/hostile/" + name)
		unharmed(name)
		o.wants("a link", "Install")
		if name == "hostile" {
			o.look("hostile")
		}
		o.run(chromedp.Click(chromedp.CSS("button[name=make]")), chromedp.WaitVisible(chromedp.CSS("#made")))
		o.eventually("all of it", `document.readyState === "complete"`)
		unharmed(name + ", with a manifest")
	}
	o.visit("/extensions/%22%3E%3Cscript%3Ewindow.harm=1%3C%2Fscript%3E?q=%3Cscript%3E")
	unharmed("a name that is none")
	o.forgive(404)
}
