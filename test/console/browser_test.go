package console

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// tab is a tab of a browser, in which a console is open. Whatever is wrong in it fails the
// test: an error in its console, a dialog, a request that goes elsewhere.
type tab struct {
	t    testing.TB
	ctx  context.Context //nolint:containedctx // it is the tab
	base string

	mu    sync.Mutex
	amiss []string
}

// openTab starts a browser with the console of whoever has the kubeconfig.
func openTab(t testing.TB, kubeconfig string) *tab {
	t.Helper()
	needBrowser(t)
	first := startConsole(t, kubeconfig)
	parsed, err := url.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(theSuite.browser), chromedp.NoSandbox, chromedp.WindowSize(1280, 900), chromedp.UserDataDir(t.TempDir()))
	allocated, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	bounded, end := context.WithTimeout(ctx, 2*patience)
	o := &tab{t: t, ctx: bounded, base: "http://" + parsed.Host}
	o.run() // opens it
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until it has let go of its folder
		end()
		cancel()
		stop()
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, one := range o.amiss {
			t.Error(one)
		}
	})
	if err := chromedp.Listen(bounded, o.listen); err != nil {
		t.Fatal(err)
	}
	call(o, log.Enable, cdp.Empty{})
	call(o, runtime.Enable, cdp.Empty{})
	call(o, network.Enable, network.EnableParams{})
	o.run(chromedp.Navigate(first), chromedp.WaitVisible(chromedp.CSS("h1")))
	return o
}

func (o *tab) listen(event any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		o.amiss = append(o.amiss, "exception: "+event.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		o.amiss = append(o.amiss, fmt.Sprintf("console: %s %v", event.Type, event.Args))
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError || event.Entry.Level == log.EntryLevelWarning {
			o.amiss = append(o.amiss, fmt.Sprintf("log: %s %s", event.Entry.Text, event.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		o.amiss = append(o.amiss, "dialog: "+event.Message)
		go func() {
			_, _ = chromedp.Call(o.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *network.EventRequestWillBeSent:
		if to := event.Request.URL; !strings.HasPrefix(to, o.base+"/") {
			o.amiss = append(o.amiss, "request: "+to)
		}
	}
}

func (o *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	o.t.Helper()
	if err := chromedp.Do(o.ctx, actions...); err != nil {
		o.t.Fatal(err)
	}
}

// call tells the browser something that there is no action for.
func call[P, R any](o *tab, command cdp.Command[P, R], params P) {
	o.t.Helper()
	if _, err := chromedp.Call(o.ctx, command, params); err != nil {
		o.t.Fatal(err)
	}
}

// visit opens a page, and waits until it is there.
func (o *tab) visit(path string) {
	o.t.Helper()
	if err := chromedp.Do(o.ctx, chromedp.Navigate(o.base+path), chromedp.WaitVisible(chromedp.CSS("h1"))); err != nil {
		o.t.Fatalf("%s: %v", path, err)
	}
}

// text is all that can be read on the page; nothing while there is none, as right after a click that leads to
// another one.
func (o *tab) text() string {
	o.t.Helper()
	return evaluate[string](o, bodyText)
}

const bodyText = `document.body?.innerText ?? ""`

// wants fails for what the page does not say.
func (o *tab) wants(texts ...string) {
	o.t.Helper()
	text := o.text()
	for _, want := range texts {
		if !strings.Contains(text, want) {
			o.t.Errorf("%q is not on the page:\n%s", want, text)
		}
	}
}

// evaluate gives what a script says.
func evaluate[T any](o *tab, script string) T {
	o.t.Helper()
	found, err := tryEvaluate[T](o, script)
	if err != nil {
		o.t.Fatal(err)
	}
	return found
}

// tryEvaluate fails, among others, while the browser opens another page.
func tryEvaluate[T any](o *tab, script string) (T, error) {
	return chromedp.Run(o.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// eventually waits until a script returns true. The page may be replaced meanwhile.
func (o *tab) eventually(what, script string) {
	o.t.Helper()
	testkit.Eventually(o.t, patience, what, func(context.Context) error {
		is, err := tryEvaluate[bool](o, script)
		if err == nil && !is {
			var text string
			if text, err = tryEvaluate[string](o, bodyText); err == nil {
				err = fmt.Errorf("the page says\n%s", text)
			}
		}
		return err
	})
}

// looks are the widths and schemes that pages are looked at in.
var looks = []struct {
	name   string
	width  int64
	scheme string
}{
	{"375-light", 375, "light"},
	{"375-dark", 375, "dark"},
	{"1920-light", 1920, "light"},
	{"1920-dark", 1920, "dark"},
}

// look shows the page in both widths and both schemes. Nothing of it is outside of the
// window, and every part that can be reached has a name.
func (o *tab) look(name string) {
	o.t.Helper()
	for _, look := range looks {
		call(o, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: look.width, Height: 1000, DeviceScaleFactor: 1, Mobile: look.width < 500})
		call(o, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}})
		o.run(chromedp.Sleep(100 * time.Millisecond))
		if over := evaluate[int64](o, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			o.t.Errorf("%s, %s: %d pixels are outside of the window", name, look.name, over)
		}
		if *pictures != "" {
			o.picture(name + "-" + look.name)
		}
		o.accessible(name + ", " + look.name)
	}
	unnamed := evaluate[[]string](o, `[...document.querySelectorAll("a, button, input:not([type=hidden]), select, textarea, img")].filter((e) =>
		e.tagName === "IMG" ? !e.hasAttribute("alt") : !(e.textContent || e.labels?.length || e.ariaLabel || e.querySelector("img[alt]:not([alt=''])"))).map((e) => e.outerHTML)`)
	for _, one := range unnamed {
		o.t.Errorf("%s: it has no name: %s", name, one)
	}
	call(o, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
}

func (o *tab) picture(name string) {
	o.t.Helper()
	data, err := chromedp.Run(o.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*pictures, name+".png"), data, 0o600)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// docPicture is what docs/console.md shows: as much as a window has.
func (o *tab) docPicture(name string) {
	o.t.Helper()
	call(o, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 860, DeviceScaleFactor: 1})
	call(o, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}})
	data, err := chromedp.Run(o.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*pictures, name+".png"), data, 0o600)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	call(o, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
}

// forgive drops that pages were not there, which a browser notes as an error.
func (o *tab) forgive(code int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var left []string
	for _, one := range o.amiss {
		if !strings.HasPrefix(one, "log: ") || !strings.Contains(one, fmt.Sprintf("status of %d", code)) {
			left = append(left, one)
		}
	}
	o.amiss = left
}
