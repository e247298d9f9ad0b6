package console

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// axeVariable names a file with axe-core, by which pages are held against rules of
// accessibility.
const axeVariable = "AXE_JS"

// readAxe gives the script; empty if there is none here.
func readAxe() (string, error) {
	path := os.Getenv(axeVariable)
	if path == "" {
		return "", nil
	}
	script, err := os.ReadFile(path)
	return string(script), err
}

// violation is a rule that a page breaks.
type violation struct {
	ID     string   `json:"id"`
	Impact string   `json:"impact"`
	Help   string   `json:"help"`
	Nodes  []string `json:"nodes"`
}

// accessible fails for what is serious, or worse.
func (o *tab) accessible(name string) {
	o.t.Helper()
	for _, one := range o.violations() {
		o.t.Errorf("%s: %s, %s: %s", name, one.Impact, one.ID, one.Help)
		for _, node := range one.Nodes {
			o.t.Log(node)
		}
	}
}

// violations are none without axe-core, which runs beside the page, as that itself allows no
// script.
func (o *tab) violations() []violation {
	o.t.Helper()
	if theSuite.axe == "" {
		return nil
	}
	evaluate[bool](o, "window.axe === undefined && (() => {"+theSuite.axe+"})(); true")
	return evaluate[[]violation](o, `axe.run(document, {resultTypes: ["violations"], preload: false}).then((r) =>
		r.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) =>
			({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 5).map((n) => n.html.slice(0, 300) + " " + n.failureSummary)})))`)
}

// What axe-core finds is not let through.
//
//nolint:paralleltest // one browser at a time
func TestWhatIsNotAccessibleIsFound(t *testing.T) {
	o := openTab(t, adminKubeconfig(t))
	if theSuite.axe == "" {
		t.Skipf("needs a file with axe-core in %s: make axe gets it", axeVariable)
	}
	evaluate[bool](o, `document.documentElement.removeAttribute("lang"); true`)
	if found := o.violations(); len(found) != 1 || found[0].ID != "html-has-lang" || len(found[0].Nodes) != 1 {
		t.Errorf("got %+v", found)
	}
}

// controls are all that somebody can use on a page, but for what is folded away.
const controls = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter((e) =>
	e.getClientRects().length > 0 && !e.disabled && e.tabIndex >= 0 && (e.tagName === "SUMMARY" || !e.closest("details:not([open])")) && e.checkVisibility({visibilityProperty: true}))`

// tabThrough reaches every control with the tabulator alone, and sees each one that has the
// focus.
func (o *tab) tabThrough(name string) {
	o.t.Helper()
	evaluate[bool](o, `window.reached = new Set(); document.activeElement.blur(); true`)
	all := evaluate[int](o, controls+".length")
	if all == 0 {
		o.t.Errorf("%s: there are no controls", name)
	}
	const others = 50 // what a browser adds: parts that scroll
	for range all + others {
		o.run(chromedp.KeyEvent(kb.Tab))
		unseen := evaluate[string](o, `(() => { const e = document.activeElement; if (e === document.body) return "";
			reached.add(e);
			const box = e.getBoundingClientRect(), style = getComputedStyle(e);
			const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
			const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
			return outlined && inside ? "" : e.outerHTML.slice(0, 200) })()`)
		if unseen != "" {
			o.t.Errorf("%s: it has the focus and cannot be seen: %s", name, unseen)
		}
		if evaluate[int](o, controls+".filter((e) => !reached.has(e)).length") == 0 {
			return
		}
	}
	for _, one := range evaluate[[]string](o, controls+".filter((e) => !reached.has(e)).map((e) => e.outerHTML.slice(0, 200))") {
		o.t.Errorf("%s: the tabulator does not lead to %s", name, one)
	}
}
