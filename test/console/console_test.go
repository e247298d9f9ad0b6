package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/operator"
)

func adminKubeconfig(t testing.TB) string {
	t.Helper()
	needBrowser(t)
	return theSuite.Cluster.Kubeconfig()
}

// The manifest that the form makes installs the package, with the least rights, and every
// page shows what has become of it.
//
//nolint:paralleltest // what it installs, the next ones show
func TestFromThePackageToTheExtension(t *testing.T) {
	o := openTab(t, adminKubeconfig(t))
	o.visit("/catalogs")
	o.wants("sample", "hostile", "yes, for")
	o.look("catalogs")

	o.visit("/packages")
	o.eventually("icons", `[...document.images].slice(0, 4).every((i) => i.complete)`)
	o.look("packages")
	o.run(chromedp.SendKeys(chromedp.CSS("#q"), "sample-op"))
	o.eventually("the search", `document.querySelectorAll("#packages > li:not([hidden])").length === 1`)
	o.run(chromedp.Click(chromedp.CSS("#packages > li:not([hidden]) a")), chromedp.WaitVisible(chromedp.CSS("#install")))
	o.wants("sample-operator", "stable", "1.1.0", "Versions")
	o.run(chromedp.SetValue(chromedp.CSS("#version"), "1.1.0"), chromedp.Click(chromedp.CSS("button[name=fields]")))
	o.eventually("the fields", `document.getElementById("fields") !== null`)
	o.wants("Configuration of sample-operator.v1.1.0", "deploymentConfig", "operatorConditions")
	o.look("package")
	o.run(
		chromedp.SetValue(chromedp.CSS("#version"), "1.0.0"), chromedp.Click(chromedp.CSS("input[name=rights]")), chromedp.Click(chromedp.CSS("input[name=manual]")), chromedp.Click(chromedp.CSS("input[name=channel][value=stable]")),
		chromedp.Click(chromedp.CSS("button[name=make]")), chromedp.WaitVisible(chromedp.CSS("#made")),
	)
	o.look("package-made")
	manifest := evaluate[string](o, `document.querySelector("#made pre").textContent`)
	if _, err := chromedp.CallBrowser(o.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "clipboard-write"}, Setting: browser.PermissionSettingGranted, Origin: o.base,
	}); err != nil {
		t.Fatal(err)
	}
	o.run(chromedp.Click(chromedp.CSS("#made button.copy")))
	o.eventually("the copy", `document.querySelector("#made button.copy").textContent === "Copied"`)
	downloaded := evaluate[string](o, `document.querySelector("#made a.button").href`)
	if !strings.HasPrefix(downloaded, o.base+"/packages/sample/sample-operator/manifest?") {
		t.Errorf("the download is at %s", downloaded)
	}
	for _, want := range []string{"kind: Namespace", "kind: ServiceAccount", "kind: ClusterRole", "kind: ClusterRoleBinding", "kind: ClusterExtension", "upgradeApproval: Manual"} {
		if !strings.Contains(manifest, want) {
			t.Fatalf("%q is missing in\n%s", want, manifest)
		}
	}
	if _, err := theSuite.KubectlOutput(t.Context(), manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	o.visit("/extensions")
	o.eventually("readiness, without reloading", `document.querySelector("tr[data-name=sample-operator] .good") !== null`)

	// An upgrade that waits for somebody shows without reloading.
	evaluate[bool](o, `window.stays = true`)
	update(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.Version = "" })
	o.eventually("the approval", `document.querySelector("tr[data-name=sample-operator] td[data-label='Waits for approval']").textContent === "1.1.0"`)
	o.eventually("the newest version", `document.querySelector("tr[data-name=sample-operator] td[data-label='Newest in its channels']").textContent === "1.1.0"`)
	if !evaluate[bool](o, `window.stays === true`) {
		t.Error("the page was loaded again")
	}
	o.look("extensions")
	o.visit("/extensions/sample-operator")
	o.wants("1.1.0", "Deployment", "To approve 1.1.0", "To stay with 1.0.0", "Conditions", "In no namespace", "Namespace sample-operator", "Ready", "Rights in use")
	o.eventually("the graph", `document.querySelector("img.graph").naturalWidth > 0`)
	o.look("extension")
	if *pictures != "" {
		o.docPicture("console")
	}
	o.visit("/extensions/sample-operator/plan")
	o.wants("from sample-operator.v1.0.0 1.0.0 to sample-operator.v1.1.0 1.1.0 from catalog sample", "to delete", "It would wait for")
	o.look("plan")
}

func update(t *testing.T, change func(*ocv1.ClusterExtension)) {
	t.Helper()
	if err := theSuite.Update(t.Context(), operator.Package, change); err != nil {
		t.Fatal(err)
	}
}

// Whoever uses the keyboard alone gets everywhere.
//
//nolint:paralleltest // it has the focus alone
func TestTheKeyboard(t *testing.T) {
	o := openTab(t, adminKubeconfig(t))
	o.visit("/extensions")
	o.run(chromedp.KeyEvent(kb.Tab))
	if got := evaluate[string](o, `document.activeElement.textContent`); got != "Skip to content" {
		t.Errorf("the first stop is %q", got)
	}
	o.run(chromedp.KeyEvent("/"))
	if got := evaluate[string](o, `document.activeElement.id`); got != "q" {
		t.Errorf("the slash leads to %q", got)
	}
	o.run(chromedp.KeyEvent("nothing-like-it"))
	o.eventually("the filter", `!document.getElementById("none").hidden`)
	for _, path := range []string{
		"/extensions", "/extensions/sample-operator", "/extensions/sample-operator/plan", "/catalogs", "/packages?q=sample",
		"/packages/sample/sample-operator", "/packages/sample/sample-operator?fields=1&make=1&name=x&namespace=x&account=x&version=1.1.0",
	} {
		o.visit(path)
		o.tabThrough(path)
	}
}

// A user who may read nothing but ClusterExtensions sees these on every page, and what is
// missing.
//
//nolint:paralleltest // it shows what the first one has installed
func TestFewRights(t *testing.T) {
	needBrowser(t)
	kubeconfig, err := theSuite.Cluster.KubeconfigFor("console-viewer")
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "console-viewer"}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{ocv1.GroupVersion.Group}, Resources: []string{"clusterextensions"}, Verbs: []string{"get", "list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "console-viewer"}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		},
	} {
		if err := theSuite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	o := openTab(t, kubeconfig)
	for path, want := range map[string][]string{
		"/extensions":                      {"Not to be had", "clustercatalogs", "sample-operator", "1.0.0"},
		"/extensions/sample-operator":      {"Not to be had", "listing ClusterCatalogs", "events", "release records", "approvedVersion", "Ready"},
		"/extensions/sample-operator/plan": {"Not to be had", "the plan: "},
		"/catalogs":                        {"Not to be had", "clustercatalogs", "There are no catalogs to show."},
		"/packages":                        {"Not to be had", "clustercatalogs"},
	} {
		o.visit(path)
		o.wants(want...)
	}
	o.visit("/packages/sample/sample-operator")
	o.wants("ClusterCatalog sample", "Not to be had", "clustercatalogs")
	o.forgive(503)
	o.visit("/extensions/sample-operator")
	o.look("few-rights")
}

// Nobody gets in without the token, and a page of another site gets nothing.
//
//nolint:paralleltest // it follows those that show pages
func TestOthersGetNothing(t *testing.T) {
	o := openTab(t, adminKubeconfig(t))
	if strings.Contains(evaluate[string](o, `location.href`), "token") || evaluate[string](o, `document.cookie`) != "" {
		t.Error("the token is in the URL, or the cookie can be read by scripts")
	}
	for _, host := range []string{"", "rebound.test"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.base+"/extensions", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode < http.StatusBadRequest {
			t.Errorf("host %q: code %d", host, reply.StatusCode)
		}
	}
}

// With 1,000 extensions the page filters as somebody types and scrolls to its end, without
// loading again.
//
//nolint:paralleltest // they follow the others, whose pages would be larger
func TestManyExtensions(t *testing.T) {
	o := openTab(t, adminKubeconfig(t))
	createManyExtensions(t, o)
	o.visit("/extensions")
	evaluate[bool](o, `window.stays = true`)
	o.run(chromedp.SendKeys(chromedp.CSS("#q"), "many-0999"))
	o.eventually("the filter", `document.querySelectorAll("#extensions tbody tr:not([hidden])").length === 1`)
	evaluate[bool](o, `(() => { const q = document.getElementById("q"); q.value = ""; return q.dispatchEvent(new Event("input")) })()`)
	if last := evaluate[bool](o, `(() => { const last = document.querySelector("#extensions tbody tr:last-child"); last.scrollIntoView(); const row = last.getBoundingClientRect(); return row.top < innerHeight && row.bottom > 0 })()`); !last {
		t.Error("the last row is not reached")
	}
	if !evaluate[bool](o, `window.stays === true`) {
		t.Error("the page was loaded again")
	}
}
